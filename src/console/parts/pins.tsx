/** Definitions of a connection that somebody accepted, and how those that its server lists now differ from them. */

import { useEffect, useRef } from 'preact/hooks'
import type { PinDifference, PinList } from '../../model/pins.ts'
import { ask } from '../interface.ts'
import { useAction, useResource } from '../resource.ts'
import { Foreign } from './foreign.tsx'
import { Action, State, Wrong } from './parts.tsx'
import { Problem } from './room.tsx'

type Pinned = NonNullable<PinList['instructions']>

/** `path`: of the connection. `reason`: why its pins may not be accepted. */
export function Pins({ path, reason }: { readonly path: string; readonly reason: string | undefined }) {
  const pins = useResource<PinList>(`${path}/.pins`)
  const accept = useAction(async (body: object) => {
    await ask('POST', `${path}/.pins`, { body })
    pins.again()
  })
  const { data } = pins
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    // An action of its health leads here, perhaps from another room.
    if (data !== undefined && location.hash === '#pins') section.current?.scrollIntoView()
  }, [data !== undefined])
  if (pins.error !== undefined)
    return (
      <section id="pins" data-part="pins">
        <h2>Accepted definitions</h2>
        <Problem error={pins.error} again={pins.again} />
      </section>
    )
  if (data === undefined) return null
  const tools = data.tools.filter(({ state }) => state !== 'accepted')
  const instructions = data.instructions?.state === 'accepted' ? null : data.instructions
  const all = {
    accept: Object.fromEntries(tools.map(({ name, hash }) => [name, hash])),
    ...(instructions !== null && { instructions: instructions.hash }),
  }
  const count = tools.length + (instructions === null ? 0 : 1)
  const show = (name: string, pinned: Pinned, body: object) => (
    <li key={name} data-id={name}>
      <State level="attention">{pinned.state}</State> <Foreign text={name} code />{' '}
      {pinned.findings.map((finding) => (
        <State key={finding} level="down">
          {finding}
        </State>
      ))}{' '}
      {pinned.truncated && <span data-part="truncated">Not all of it is shown: look at it on the server.</span>}{' '}
      <Action name="save" reason={reason} isBusy={accept.isBusy} onClick={() => void accept.run(body)} label="Accept" />
      {pinned.diff?.map((one) => (
        <Difference key={one.path} difference={one} />
      ))}
    </li>
  )
  return (
    <section id="pins" data-part="pins" ref={section}>
      <h2>Accepted definitions</h2>
      {count === 0 ? (
        <p class="muted">
          {data.tools.length === 0
            ? 'None is accepted: postern compares none.'
            : `${data.tools.length} accepted, none changed.`}{' '}
          Setting: {data.pins}.
        </p>
      ) : (
        <>
          <p>
            {count} differ from what somebody accepted.{' '}
            {data.pins === 'block'
              ? 'Their tools are hidden and refused until somebody accepts them.'
              : 'They can be called all the same.'}
          </p>
          <ul class="rows">
            {tools.map((tool) => show(tool.name, tool, { accept: { [tool.name]: tool.hash } }))}
            {instructions !== null && show('instructions', instructions, { instructions: instructions.hash })}
          </ul>
          {count > 1 && (
            <Action name="save" reason={reason} isBusy={accept.isBusy} onClick={() => void accept.run(all)}>
              Accept all {count}
            </Action>
          )}
        </>
      )}
      <Wrong error={accept.error} />
    </section>
  )
}

const written = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

function Difference({ difference: { path, before, after } }: { readonly difference: PinDifference }) {
  return (
    <dl class="difference">
      <Foreign as="dt" text={path === '' ? 'the text' : path} code />
      <dd>
        {before !== undefined && <Foreign as="del" text={written(before)} code />}
        {after !== undefined && <Foreign as="ins" text={written(after)} code />}
      </dd>
    </dl>
  )
}
