/** Events as they happen. A browser opens few connections to a server: one tab reads the stream for all of them. */

import { computed, effect, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { base, findSession, session } from './interface.ts'

const types = ['call', 'connection', 'client', 'gap'] as const
export type EventType = (typeof types)[number]

/** Whether events arrive, as the tab that reads them says. */
export const isStreamOpen = signal(true)
/** Milliseconds before a stream that was refused is asked for again. */
const againMs = 5000

interface Passed {
  readonly type: EventType | 'open' | 'closed'
  readonly data: unknown
  /** The user of the session: another one may have signed in meanwhile. */
  readonly userId: string
}

const listeners = new Set<(event: Passed) => void>()
const channel = new BroadcastChannel(`postern events ${base}`)

/** Events that have arrived, and which of them was the last of each type. */
let arrived = 0
const last: Partial<Record<Passed['type'], number>> = {}

export const eventsSoFar = (): number => arrived

/** Whether an event of this type has arrived since there were so many. */
export const hasArrivedSince = (type: EventType, count: number): boolean => (last[type] ?? 0) > count

function deliver(event: Passed): void {
  if (event.userId !== session.value?.userId) return
  arrived += 1
  last[event.type] = arrived
  if (event.type === 'open' || event.type === 'closed') isStreamOpen.value = event.type === 'open'
  else for (const listener of listeners) listener(event)
}
channel.onmessage = ({ data }) => deliver(data as Passed)

/** Reads the stream for all tabs, until the session or this tab ends. `isLate`: another tab has read until now. */
async function lead(userId: string, stop: AbortSignal, isLate: boolean): Promise<void> {
  const pass = (type: Passed['type'], data: unknown) => {
    const event = { type, data, userId }
    channel.postMessage(event)
    deliver(event)
  }
  let opened: EventSource | undefined
  const open = (mayMiss: boolean) => {
    const source = new EventSource(`${base}/events?types=call,connection,client`)
    opened = source
    // The browser opens it again by itself, and then asks for what was missed by the last event that it has heard.
    let [isMissing, hasHeard] = [mayMiss, false]
    for (const type of types)
      source.addEventListener(type, ({ data }) => {
        hasHeard = true
        pass(type, JSON.parse(data))
      })
    source.addEventListener('open', () => {
      pass('open', {})
      // Something may have happened in between.
      if (isMissing) pass('gap', {})
      isMissing = !hasHeard
    })
    source.addEventListener('error', () => {
      pass('closed', {})
      // The browser goes on by itself where the server is away. Where it refuses, the session may have ended.
      if (source.readyState !== EventSource.CLOSED) return
      setTimeout(async () => {
        if (!stop.aborted) await findSession()
        if (!stop.aborted) open(true)
      }, againMs)
    })
  }
  open(isLate)
  await new Promise((resolve) => stop.addEventListener('abort', resolve))
  opened?.close()
}

/** Begins with each session, in every tab: one of them has the lock. */
export function followSession(): void {
  const user = computed(() => session.value?.userId)
  effect(() => {
    if (user.value === undefined) return
    const stop = new AbortController()
    // A session that ends gives the lock up by an abort.
    void lock(user.value, stop.signal).catch(() => {})
    return () => stop.abort()
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

/** Milliseconds between two paintings of what came. */
const paintMs = 250

interface Bursts<T> {
  /** Whether an event that arrives now is heard. */
  readonly isWanted: (one: T) => boolean
  readonly hear: (came: readonly T[]) => void
  /** The largest number of events that wait. Past it: the first are dropped. */
  readonly most: number
  /** Called whenever events were dropped, or missed by this browser. */
  readonly lose: () => void
}

/** Calls `hear` with the events of this type that came, at most four times a second and while somebody looks. */
export function useBursts<T>(type: EventType, bursts: Bursts<T>): void {
  const waiting = useRef<T[]>([])
  const latest = useRef(bursts)
  latest.current = bursts
  useEvents<T>(type, (one) => {
    const { isWanted, most, lose } = latest.current
    if (!isWanted(one)) return
    if (waiting.current.length === most) lose()
    waiting.current = [...waiting.current.slice(1 - most), one]
  })
  useEvents('gap', () => latest.current.lose())
  useEffect(() => {
    const timer = setInterval(() => {
      const came = waiting.current
      if (came.length === 0 || document.hidden) return
      waiting.current = []
      latest.current.hear(came)
    }, paintMs)
    return () => clearInterval(timer)
  }, [])
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
