/** Parts that all rooms have: states, actions, errors, texts to copy, times. */

import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Health } from '../../model/health.ts'
import { hrefOf, placed } from '../address.ts'
import { Refused } from '../interface.ts'
import type { Resource } from '../resource.ts'
import { Foreign } from './foreign.tsx'

const shapes: Readonly<Record<string, string>> = {
  ...{ ok: '●', attention: '▲', down: '■', unknown: '○', off: '–' },
  ...{ allow: '●', depends: '▲', refuse: '■', error: '■', warning: '▲', info: '○' },
}

/** A state as a shape, a word and a colour. */
export function State({ level, children }: { readonly level: string; readonly children: ComponentChildren }) {
  return (
    <span class={`state ${level}`}>
      <span aria-hidden="true">{shapes[level] ?? '○'}</span> {children}
    </span>
  )
}

interface ActionProps {
  readonly name: string
  readonly children: ComponentChildren
  /** One filled button for a room. */
  readonly isMain?: boolean
  readonly isBusy?: boolean
  /** Why it is disabled, and who could do it. */
  readonly reason?: string | undefined
  readonly type?: 'button' | 'submit'
  readonly onClick?: () => void
  readonly for?: string
}

/** A button. A disabled one says why, and stays in the order of the keyboard. */
export function Action({ name, children, isMain, isBusy, reason, type = 'button', onClick, for: of }: ActionProps) {
  const isDisabled = reason !== undefined || isBusy === true
  return (
    <>
      <button
        type={type}
        class={isMain === true ? 'main' : undefined}
        data-action={name}
        data-for={of}
        data-reason={reason}
        aria-disabled={isDisabled}
        title={reason}
        onClick={(event) => {
          if (isDisabled) event.preventDefault()
          else onClick?.()
        }}
      >
        {children}
        {isBusy === true && <Busy />}
      </button>
      {reason !== undefined && <small class="reason">{reason}</small>}
    </>
  )
}

/** After three tenths of a second: what is quick shows nothing. */
export function Busy() {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return isSlow ? (
    <span data-part="busy" class="busy" role="status">
      working…
    </span>
  ) : null
}

export function Problem({ error, again }: { readonly error: Error; readonly again?: (() => void) | undefined }) {
  const refused = error instanceof Refused ? error : undefined
  const message = refused?.message ?? 'The server cannot be reached.'
  return (
    <div data-part="error" class="problem" role="alert">
      <p>
        <Foreign text={message} />
      </p>
      {refused?.requestId !== undefined && (
        <p class="muted">
          Request <Copied text={refused.requestId} />
        </p>
      )}
      <p>
        {refused?.setupUrl !== undefined && <Elsewhere href={refused.setupUrl}>Set it up</Elsewhere>}
        {again === undefined ? (
          <a href={hrefOf()} data-action="go-overview">
            Go to the overview
          </a>
        ) : (
          <Action name="retry" onClick={again}>
            Try again
          </Action>
        )}
      </p>
    </div>
  )
}

/** A link that leads out of the console: in a new tab, with its host. */
export function Elsewhere({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const url = URL.parse(href, location.href)
  if (url === null || !/^https?:$/.test(url.protocol)) return <Foreign text={href} code />
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer">
      {children} <small class="muted">({url.host})</small>
    </a>
  )
}

export function Copied({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false)
  return (
    <span class="copied">
      <code>{text}</code>
      <button
        type="button"
        class="small"
        data-action="copy"
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      >
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  )
}

const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

export function When({ at }: { readonly at: string }) {
  const seconds = (Date.parse(at) - Date.now()) / 1000
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? (['second', 1] as const)
  return (
    <time dateTime={at} title={at}>
      {ago.format(Math.round(seconds / size), unit)}
    </time>
  )
}

/** The one thing that would help a connection. */
export function HealthLine({ health }: { readonly health: Health }) {
  return (
    <>
      <State level={health.level}>
        <Foreign text={health.summary} />
      </State>
      {health.since !== null && (
        <small class="muted">
          {' '}
          since <When at={health.since} />
        </small>
      )}
      {health.action !== null && 'href' in health.action && (
        <>
          {' '}
          <Elsewhere href={health.action.href}>{health.action.label}</Elsewhere>
        </>
      )}
    </>
  )
}

interface RoomProps {
  readonly name: string
  readonly title: string
  readonly id?: string
  readonly resource?: Pick<Resource<unknown>, 'error' | 'isLoading' | 'again'>
  readonly isEmpty?: boolean
  readonly actions?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The root of a room: its heading, which has the focus when somebody comes in, and its state. */
export function Room({ name, title, id, resource, isEmpty, actions, children }: RoomProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
    document.title = [title, 'postern'].join(' · ')
  }, [name, title])
  const { error, isLoading = false, again } = resource ?? {}
  const state = isLoading ? 'loading' : error !== undefined ? 'error' : isEmpty === true ? 'empty' : 'ready'
  useLayoutEffect(() => {
    if (!isLoading) placed()
  }, [isLoading, name, title])
  return (
    <main id="main" data-room={name} data-state={state} data-id={id}>
      <div class="heading">
        <h1 ref={heading} tabIndex={-1}>
          <Foreign text={title} />
        </h1>
        <div class="actions">{actions}</div>
      </div>
      {isLoading ? <Busy /> : error !== undefined ? <Problem error={error} again={again} /> : children}
    </main>
  )
}

export type InputType = 'text' | 'password' | 'date' | 'time' | 'email' | 'url'

interface FieldProps {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: InputType
  readonly hint?: string
  readonly error?: string | undefined
  readonly options?: readonly string[]
  readonly isLong?: boolean
  readonly isRequired?: boolean
}

/** Something that can be typed or chosen, with its label, hint and error. */
export function Field({
  name,
  label,
  value,
  onInput,
  type = 'text',
  hint,
  error,
  options,
  isLong,
  isRequired,
}: FieldProps) {
  const id = useId()
  const shared = {
    id,
    'data-field': name,
    'aria-describedby': hint === undefined && error === undefined ? undefined : `${id}-more`,
    name,
    value,
    'aria-invalid': error !== undefined,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  }
  return (
    <div class="field">
      <label for={id}>
        <Foreign text={label} />
        {isRequired === true && <small class="muted"> (required)</small>}
      </label>
      {options !== undefined ? (
        <select {...shared}>
          {options.map((option) => (
            <option key={option} value={option}>
              {option === '' ? 'any' : option}
            </option>
          ))}
        </select>
      ) : isLong === true ? (
        <textarea {...shared} rows={8} spellcheck={false} class="code" />
      ) : (
        <input {...shared} type={type as 'text'} autocomplete={type === 'password' ? 'current-password' : 'off'} />
      )}
      <span id={`${id}-more`}>
        {hint !== undefined && <small class="muted">{hint}</small>}
        {error !== undefined && (
          <small class="wrong">
            <Foreign text={error} />
          </small>
        )}
      </span>
    </div>
  )
}
