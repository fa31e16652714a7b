/** Fields in which somebody types or chooses, and the form around them. */

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { filter, filterOf } from '../address.ts'
import { session } from '../interface.ts'
import { Foreign, hasUnseen, visible } from './foreign.tsx'

/** `lines`: a text that may have several; Enter sends the form, and Shift with it begins a line. */
export type InputType = 'text' | 'password' | 'secret' | 'date' | 'email' | 'url' | 'number' | 'lines' | 'json'

interface FieldProps {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: InputType
  readonly hint?: string
  /** A stranger's. */
  readonly foreignHint?: string | undefined
  readonly placeholder?: string
  /** From the server. */
  readonly error?: string | undefined
  /** Certainly wrong: it is shown once somebody has left the field, or where `isShown`. */
  readonly wrong?: string | undefined
  readonly isShown?: boolean
  readonly options?: readonly string[]
  /** As they are shown; left out: as they are. */
  readonly names?: readonly string[]
  /** Words that may be typed. */
  readonly suggestions?: readonly string[]
  /** Shown for the option ''. */
  readonly nothing?: string
  readonly isRequired?: boolean
}

/** Something that can be typed or chosen, with its label, hint and error. */
export function Field(props: FieldProps) {
  const { name, label, value, onInput, type = 'text', wrong, options, names } = props
  const id = useId()
  const [isLeft, setLeft] = useState(false)
  const error = props.error ?? (isLeft || props.isShown === true ? wrong : undefined)
  useEffect(() => {
    // Not while somebody types elsewhere.
    if (props.error !== undefined && document.activeElement?.matches('button')) document.getElementById(id)?.focus()
  }, [props.error])
  const shared = {
    id,
    'data-field': name,
    'data-wrong': wrong,
    'aria-describedby': `${id}-more`,
    'aria-invalid': error !== undefined,
    'aria-required': props.isRequired === true,
    name,
    value,
    placeholder: props.placeholder === undefined ? undefined : visible(props.placeholder),
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
    onBlur: () => setLeft(true),
  }
  return (
    <div class="field">
      <label for={id}>
        <Foreign text={label} />
        {props.isRequired === true && <small class="muted"> (required)</small>}
      </label>
      {options !== undefined ? (
        <select {...shared}>
          {options.map((option, index) => (
            <option key={option} value={option} dir="auto">
              {option === '' ? (props.nothing ?? 'any') : visible(names?.[index] ?? option)}
            </option>
          ))}
        </select>
      ) : type === 'json' || type === 'lines' ? (
        <Lines shared={shared} isJson={type === 'json'} />
      ) : (
        <input {...shared} {...inputs[type]} list={props.suggestions && `${id}-list`} spellcheck={false} />
      )}
      {props.suggestions !== undefined && (
        <datalist id={`${id}-list`}>
          {props.suggestions.map((word) => (
            <option key={word} value={word} />
          ))}
        </datalist>
      )}
      <span id={`${id}-more`}>
        <Beneath {...props} error={error} />
      </span>
    </div>
  )
}

/** The hints of a field, characters that nobody sees, and its error. */
function Beneath({ type, value, hint = '', foreignHint, error }: FieldProps) {
  return (
    <>
      <small class="muted">
        {foreignHint !== undefined && <Foreign text={foreignHint} />}
        {foreignHint !== undefined && hint !== '' && ' · '}
        <Foreign text={hint} />
      </small>
      {/* A stranger's default may have them, and a field shows its value as it is. */}
      {type !== 'password' && type !== 'secret' && hasUnseen(value) && (
        <small>
          It has characters that nobody sees: <Foreign text={value} code />
        </small>
      )}
      {error !== undefined && (
        <small class="wrong" role="alert">
          <Foreign text={error} />
        </small>
      )}
    </>
  )
}

type FilterProps = Omit<FieldProps, 'name' | 'value' | 'onInput'> & { readonly of: string; readonly name?: string }

/** A field for a filter of the room, which the address has as the parameter `of`. */
export function Filter({ of, name = of, ...more }: FilterProps) {
  return <Field {...more} name={name} value={filterOf(of)} onInput={(text) => filter({ [of]: text })} />
}

const inputs: Readonly<Record<Exclude<InputType, 'lines' | 'json'>, object>> = {
  text: { type: 'text', autocomplete: 'off' },
  // The key at the sign-in, which the browser may keep; no other secret.
  password: { type: 'password', autocomplete: 'current-password' },
  secret: { type: 'password', autocomplete: 'off' },
  date: { type: 'date' },
  email: { type: 'email', autocomplete: 'off' },
  url: { type: 'text', inputmode: 'url', autocomplete: 'off' },
  number: { type: 'text', inputmode: 'decimal', autocomplete: 'off' },
}

/** Grows with its text. */
function Lines({ shared, isJson }: { readonly shared: { readonly value: string }; readonly isJson: boolean }) {
  const enter = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    const isSent = event.key === 'Enter' && !event.isComposing && (isJson ? event.ctrlKey : !event.shiftKey)
    if (!isSent) return
    event.preventDefault()
    event.currentTarget.form?.requestSubmit()
  }
  const rows = Math.min(24, Math.max(isJson ? 6 : 1, shared.value.split('\n').length))
  return <textarea {...shared} rows={rows} spellcheck={!isJson} class={isJson ? 'code' : undefined} onKeyDown={enter} />
}

interface FormProps {
  readonly title?: string
  readonly onSend: () => void
  /** Before it is known whether something is wrong. */
  readonly onTry?: () => void
  readonly children: ComponentChildren
}

/** Sends what was typed, unless something in it is certainly wrong: that gets the focus. */
export function Form({ title, onSend, onTry, children }: FormProps) {
  const form = useRef<HTMLFormElement>(null)
  return (
    <form
      ref={form}
      class="panel"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        onTry?.()
        if (!showWrong(form.current)) onSend()
      }}
    >
      {title !== undefined && <h2>{title}</h2>}
      {children}
    </form>
  )
}

/** Shows all that is certainly wrong within an element, and moves the focus to the first of it. Whether there is any. */
export function showWrong(within: HTMLElement | null): boolean {
  const wrong = [...(within?.querySelectorAll<HTMLElement>('[data-wrong]:not([hidden] *)') ?? [])]
  // Each tells what is wrong when it is left.
  for (const one of wrong) one.dispatchEvent(new FocusEvent('blur'))
  wrong[0]?.focus()
  return wrong.length > 0
}

/** Hours that a draft is kept. */
const draftHours = 12

/**
 * A text that this tab keeps for its user, over the end of a session too, if it has nothing secret in it as `mayKeep`
 * says.
 */
export function useDraft(name: string, first = '', mayKeep: (text: string) => boolean = () => true) {
  const key = `draft ${session.value?.userId ?? ''} ${name}`
  const [text, setText] = useState(() => draftOf(key) ?? first)
  useEffect(() => {
    if (text === first || !mayKeep(text)) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, JSON.stringify({ text, until: Date.now() + draftHours * 3_600_000 }))
  }, [key, text, first])
  return [text, setText] as const
}

function draftOf(key: string): string | undefined {
  const { text, until } = JSON.parse(sessionStorage.getItem(key) ?? '{}') as { text?: string; until?: number }
  return (until ?? 0) > Date.now() ? text : undefined
}
