/** Parts that all rooms have: states, actions, links, texts to copy, times. */

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { filter, filterOf } from '../address.ts'
import { Refused } from '../interface.ts'
import { Foreign } from './foreign.tsx'

const shapes: Readonly<Record<string, string>> = {
  ...{ ok: '●', attention: '▲', down: '■', unknown: '○', off: '–' },
  ...{ allow: '●', depends: '▲', refuse: '■', error: '■', warning: '▲', info: '○' },
}

interface StateProps {
  readonly level: string
  readonly children?: ComponentChildren
  /** A stranger's, in place of children. */
  readonly text?: string
}

/** A state as a shape, a word and a colour. */
export function State({ level, children, text }: StateProps) {
  return (
    <span class={`state ${level}`}>
      <span aria-hidden="true">{shapes[level] ?? '○'}</span> {text === undefined ? children : <Foreign text={text} />}
    </span>
  )
}

interface ActionProps {
  readonly name: string
  /** In place of a label, for one with elements in it. */
  readonly children?: ComponentChildren
  readonly label?: string
  /** One filled button for a room. */
  readonly isMain?: boolean
  /** In a row of a list. */
  readonly isSmall?: boolean
  readonly isBusy?: boolean
  /** Why it is disabled, and who could do it. */
  readonly reason?: string | undefined
  readonly type?: 'button' | 'submit'
  readonly onClick?: () => void
  /** In place of `isBusy` and `onClick`. */
  readonly does?: { readonly isBusy: boolean; run(): Promise<unknown> }
  readonly for?: string
}

/** A button. A disabled one says why, and stays in the order of the keyboard. */
export function Action({ name, label, children, isMain, isSmall, reason, type, ...props }: ActionProps) {
  const { does, isBusy = does?.isBusy === true, onClick = () => void does?.run() } = props
  const isDisabled = reason !== undefined || isBusy
  return (
    <>
      <button
        type={type ?? 'button'}
        class={isMain === true ? 'main' : isSmall === true ? 'small' : undefined}
        data-action={name}
        data-for={props.for}
        data-reason={reason}
        aria-disabled={isDisabled}
        title={reason}
        onClick={(event) => {
          if (isDisabled) event.preventDefault()
          else onClick()
        }}
      >
        {label ?? children} {isBusy && <Busy />}
      </button>
      {reason !== undefined && <small class="reason">{reason}</small>}
    </>
  )
}

/** Opens the form for a new thing in the room, or closes it: the filter `new`. */
export function NewAction(props: Pick<ActionProps, 'label' | 'isMain' | 'reason'>) {
  return <Action {...props} name="create" onClick={() => filter({ new: filterOf('new') === '' ? 'yes' : '' })} />
}

/** After three tenths of a second: what is quick shows nothing. */
export function Busy() {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return isSlow ? (
    <span data-part="busy" role="status">
      working…
    </span>
  ) : null
}

/** The error of an action: its message, the id of the request, and a link to the setup that would help. */
export function Wrong({ error }: { readonly error: Error | undefined }) {
  if (error === undefined) return null
  const { requestId, setupUrl } = error instanceof Refused ? error : {}
  return (
    <div data-part="error" role="alert">
      <Foreign as="p" class="wrong" text={error.message} />
      {setupUrl !== undefined && <Elsewhere href={setupUrl}>Set it up</Elsewhere>}
      {requestId !== undefined && (
        <p class="muted">
          Request <Copied text={requestId} />
        </p>
      )}
    </div>
  )
}

/** Names of a record's members, and what stands for each. */
export function Facts({ of }: { readonly of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl>
      {Object.entries(of).map(([name, one]) => one && [<dt key={name}>{name}</dt>, <dd key={`=${name}`}>{one}</dd>])}
    </dl>
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

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false)
  return (
    <Action
      name="copy"
      isSmall
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
      label={isCopied ? 'Copied' : label}
    />
  )
}

export function Copied({ text }: { readonly text: string }) {
  return (
    <span class="copied">
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  )
}

/** Every ten seconds the page writes its relative times again, while somebody looks. */
const clock = signal(0)
setInterval(() => {
  if (!document.hidden) clock.value += 1
}, 10_000)

const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

export function When({ at }: { readonly at: string }) {
  clock.value
  const seconds = (Date.parse(at) - Date.now()) / 1000
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? (['second', 1] as const)
  return (
    <time dateTime={at} title={at}>
      {Math.abs(seconds) < 10 ? 'just now' : ago.format(Math.round(seconds / size), unit)}
    </time>
  )
}
