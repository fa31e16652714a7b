/**
 * Events as they happen: one stream for all tabs of a browser, because a browser opens few connections to a server. The
 * tab that holds the lock reads it and passes each event on.
 */

import { effect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { base, session } from './interface.ts'

export type EventType = 'call' | 'connection' | 'client' | 'gap'

interface Passed {
  readonly type: EventType
  readonly data: unknown
  /** The user of the session: another one may have signed in meanwhile. */
  readonly userId: string
}

const types: readonly EventType[] = ['call', 'connection', 'client', 'gap']
const listeners = new Set<(event: Passed) => void>()
const channel = new BroadcastChannel(`postern events ${base}`)

function deliver(event: Passed): void {
  if (event.userId === session.value?.userId) for (const listener of listeners) listener(event)
}
channel.onmessage = ({ data }) => deliver(data as Passed)

/** Reads the stream for all tabs, until the session or this tab ends. `isLate`: another tab has read until now. */
function lead(userId: string, stop: AbortSignal, isLate: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const source = new EventSource(`${base}/events?types=call,connection,client`)
  const pass = (type: EventType, data: unknown) => {
    const event = { type, data, userId }
    channel.postMessage(event)
    deliver(event)
  }
  for (const type of types) source.addEventListener(type, ({ data }) => pass(type, JSON.parse(data)))
  // Something may have happened in between.
  if (isLate) source.addEventListener('open', () => pass('gap', {}), { once: true })
  stop.addEventListener('abort', () => {
    source.close()
    resolve()
  })
  return promise
}

/** Begins with each session, in every tab: one of them has the lock. */
export function followSession(): void {
  let stop = new AbortController()
  let user: string | undefined
  effect(() => {
    const userId = session.value?.userId
    if (userId === user) return
    user = userId
    stop.abort()
    stop = new AbortController()
    const { signal } = stop
    // A session that ends gives the lock up by an abort.
    if (userId !== undefined) void lock(userId, signal).catch(() => {})
  })
}

async function lock(userId: string, signal: AbortSignal): Promise<void> {
  const name = `postern events ${base}`
  const isFirst = await navigator.locks.request(name, { ifAvailable: true }, async (held) => {
    if (held !== null) await lead(userId, signal, false)
    return held !== null
  })
  if (!isFirst) await navigator.locks.request(name, { signal }, () => lead(userId, signal, true))
}

/** Calls `hear` with the data of each event of this type, as long as the room is looked at. */
export function useEvents<T>(type: EventType, hear: (data: T) => void): void {
  const latest = useRef(hear)
  latest.current = hear
  useEffect(() => {
    const listener = (event: Passed) => {
      if (event.type === type) latest.current(event.data as T)
    }
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [type])
}
