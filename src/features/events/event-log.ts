/**
 * The last things that happened in this process, for streams of events (contract, 22.4). A listener that was away reads
 * on behind the event that it heard last, as long as that is still here.
 */

import { LRUCache } from 'lru-cache'
import { type Clock, timestampOf } from '../../clock.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { Shares } from '../../fairness/shares.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { CallRecord } from '../../model/recorded-call.ts'
import type { StoredConnection } from '../../storage/connections.ts'

/** Contract 22.4: events that postern keeps for clients whose stream of events broke off. Past it: such a client gets the event `gap`. */
const eventsKeptMax = 1000
/** Contract 22.4: streams of events in a process, of which one owner has half of what the others leave. Past it: 429. */
export const eventListenersMax = 500
/** Contract 22.4: streams of events of one API key with all its tokens. Past it: 429. */
export const eventListenersOfKeyMax = 50
/** Contract 22.4: milliseconds for which postern does not report a client as new at a connection again, after it has reported this client there once. Within it: no event. */
const clientKnownMs = 600_000
/** Clients at connections that are remembered. Past it: the least recently used one is new again. */
const clientsKnownMax = 10_000

/** Something that happened. A connection is looked at when a listener hears of it. */
export type Happening =
  | { readonly type: 'call'; readonly call: CallRecord }
  | { readonly type: 'client'; readonly client: NewClient }
  | { readonly type: 'connection'; readonly ref: ConnectionRef }
  | { readonly type: 'audit'; readonly entry: object }
export type EventType = Happening['type']

interface NewClient extends ConnectionRef {
  readonly client: string
  readonly userId: string
  readonly time: string
}

/**
 * Listeners that are served at once, each in some fifty microseconds. Past it: the next ones a millisecond later, so
 * that requests come in between; other turns of the event loop follow each other too closely for that.
 */
const servedAtOnce = 4
const servedAgainMs = 1

/** Events whose connection is in memory, of up to 200 kB each. Past it: it is read again. */
const connectionsKeptMax = 100

type EventConnections = LRUCache<KeptEvent, { version: string; found: Promise<StoredConnection | undefined> }>

export class KeptEvent {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly happening: Happening
  /** Made when a listener first hears of the event, as most events have none. */
  #id: string | undefined
  readonly #connections: EventConnections

  constructor(time: number, happening: Happening, connections: EventConnections = new LRUCache({ max: 1 })) {
    this.time = time
    this.happening = happening
    this.#connections = connections
  }

  /** Of chance: a number would tell a listener how many events others cause. */
  get id(): string {
    this.#id ??= crypto.randomUUID()
    return this.#id
  }

  /**
   * The connection that the event is about, read once for each version of its namespace's connections: hundreds of
   * listeners hear of one event, and one that comes back hears of it much later. `version`: read before, '' for none.
   */
  connection(
    version: string,
    read: () => Promise<StoredConnection | undefined>,
  ): Promise<StoredConnection | undefined> {
    const known = this.#connections.get(this)
    if (version !== '' && known?.version === version) return known.found
    const found = read()
    this.#connections.set(this, { version, found })
    found.catch(() => this.#connections.delete(this))
    return found
  }

  written(data: object): Uint8Array {
    return Buffer.from(`id: ${this.id}\nevent: ${this.happening.type}\ndata: ${JSON.stringify(data)}\n\n`)
  }
}

/** Calls a function soon: a few at once, since hundreds of listeners would hold everybody else. */
function createWaking(): (serve: () => void) => void {
  const due = new Set<() => void>()
  function serveDue(): void {
    let left = servedAtOnce
    for (const serve of due) {
      due.delete(serve)
      serve()
      left -= 1
      if (left === 0) break
    }
    if (due.size > 0) setTimeout(serveDue, servedAgainMs)
  }
  return (serve) => {
    if (due.size === 0) setTimeout(serveDue, servedAgainMs)
    due.add(serve)
  }
}

export type EventLog = ReturnType<typeof createEventLog>

export function createEventLog(clock: Clock) {
  const events: KeptEvent[] = []
  const listeners = new Map<(event: KeptEvent) => void, Holder>()
  const places = new Shares(eventListenersMax)
  const perf = { now: () => clock.monotonic() }
  const clients = new LRUCache<string, true>({ max: clientsKnownMax, ttl: clientKnownMs, ttlResolution: 0, perf })
  const connections: EventConnections = new LRUCache({ max: connectionsKeptMax })

  function publish(happening: Happening): void {
    const event = new KeptEvent(clock.now(), happening, connections)
    events.push(event)
    if (events.length > eventsKeptMax) events.shift()
    for (const listener of listeners.keys()) listener(event)
  }

  return {
    publish,
    wake: createWaking(),
    /** A client is at a connection; an event says so once in ten minutes. */
    noteClient({ namespace, connectionId }: ConnectionRef, userId: string, client: string): void {
      const key = [namespace, connectionId, userId, client].join('\0')
      if (clients.has(key)) return
      clients.set(key, true)
      publish({ type: 'client', client: { namespace, connectionId, client, userId, time: timestampOf(clock) } })
    },
    /** Listens until the function that this returns is called. Throws 429 if the key or the owner has too many. */
    listen(holder: Holder, listener: (event: KeptEvent) => void): () => void {
      const ofKey = [...listeners.values()].filter(({ keyId }) => keyId === holder.keyId).length
      if (ofKey >= eventListenersOfKeyMax || !places.take(holder, 1))
        throw new PlatformError(
          'rate_limited',
          'This API key or its owner has too many streams of events open: close some',
          { retryAfter: 15 },
        )
      listeners.set(listener, holder)
      return () => {
        if (listeners.delete(listener)) places.giveBack(holder, 1)
      }
    },
    /** The events after the one of this id; undefined if some of them are not here any more. */
    after(id: string): readonly KeptEvent[] | undefined {
      const at = events.findLastIndex((event) => event.id === id)
      return at < 0 ? undefined : events.slice(at + 1)
    },
  }
}
