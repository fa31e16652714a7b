/** The root of a room, and what stands in it when something went wrong. */

import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { address, hrefOf, placed } from '../address.ts'
import { Refused } from '../interface.ts'
import type { Resource } from '../resource.ts'
import { capital, Foreign, visible } from './foreign.tsx'
import { Action, Busy, Copied, Elsewhere } from './parts.tsx'
import { AsText, type Request } from './request.tsx'

export function Problem({ error, again }: { readonly error: Error; readonly again?: (() => void) | undefined }) {
  const { requestId, setupUrl, path } = error instanceof Refused ? error : {}
  return (
    <div data-part="error" class="problem" role="alert">
      <Foreign as="p" text={error.message} />
      {requestId !== undefined && (
        <p class="muted">
          Request <Copied text={requestId} />
        </p>
      )}
      <p>
        {setupUrl !== undefined && <Elsewhere href={setupUrl}>Set it up</Elsewhere>}
        {again === undefined ? (
          <a href={hrefOf()} data-action="go-overview">
            Go to the overview
          </a>
        ) : (
          <Action name="retry" onClick={again} label="Try again" />
        )}
      </p>
      {path !== undefined && <AsText request={{ path }} />}
    </div>
  )
}

interface RoomProps {
  readonly name: string
  readonly title: string
  readonly id?: string
  readonly resource?: Pick<Resource<unknown>, 'error' | 'isLoading' | 'again'> & { readonly isEmpty?: boolean }
  readonly isEmpty?: boolean
  readonly actions?: ComponentChildren
  /** They stay, with the focus that one of them has, while the room is read again. */
  readonly filters?: ComponentChildren
  /** Of which the room shows the answer. */
  readonly request?: Request | undefined
  readonly children?: ComponentChildren
}

/** The root of a room: its heading, which has the focus when somebody comes in, and its state. */
export function Room({ name, title, id, resource, isEmpty = resource?.isEmpty, ...props }: RoomProps) {
  const { actions, filters, request, children } = props
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
    document.title = visible([...new Set([capital(name), title, 'postern'])].join(' · '))
  }, [name, title])
  const { error, isLoading = false, again } = resource ?? {}
  const state = isLoading ? 'loading' : error !== undefined ? 'error' : isEmpty === true ? 'empty' : 'ready'
  useLayoutEffect(() => {
    if (!isLoading) placed()
  }, [isLoading, name, title])
  return (
    <main id="main" tabIndex={-1} data-room={name} data-state={state} data-id={id}>
      <div class="heading">
        <h1 ref={heading} tabIndex={-1}>
          <Foreign text={title} />
        </h1>
        <div class="actions">{actions}</div>
      </div>
      {address.value.news !== undefined && <p role="status">{address.value.news}</p>}
      {filters !== undefined && <div class="filters">{filters}</div>}
      {isLoading ? <Busy /> : error !== undefined ? <Problem error={error} again={again} /> : children}
      {request !== undefined && error === undefined && !isLoading && <AsText request={request} />}
    </main>
  )
}
