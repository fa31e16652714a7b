/** `GET /events`: what happens, as a stream of events (contract, 22.4). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import type { Fairness } from '../../fairness/fairness.ts'
import { listenerOf, ownerOf } from '../../fairness/owner.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { EventStream, holdStream } from '../gateway/event-stream.ts'
import type { Every, WatchStream } from '../gateway/open-streams.ts'
import type { HealthDeps } from '../health/stored-health.ts'
import type { EventLog, EventType, KeptEvent } from './event-log.ts'
import { type VisibleEvents, visibleTo, type Wanted } from './visible-events.ts'

/** Contract 22.4: bytes of events that a listener has not taken. Past it: they are dropped, and it gets `gap`. */
const unreadBytesMax = 2 ** 20
/** Events that wait to be looked at for a listener, each of some hundred bytes. Past it: as for `unreadBytesMax`. */
const waitingMax = 1000
/** Events that one listener is served before others are. Past it: the rest when its turn comes again. */
const heardAtOnce = 8
/** Milliseconds that an event takes for a listener, with its part of the socket's work. */
const hearingMs = 0.1
/** Milliseconds after which an idle stream carries a comment. */
const commentMs = 15_000

export interface EventDeps extends HealthDeps {
  readonly events: EventLog
  readonly fairness: Pick<Fairness, 'memory' | 'time'>
  readonly watchStream: WatchStream
  readonly every: Every
}

export const eventHandlers = handlersOf({ listenEvents })

const types: readonly EventType[] = ['call', 'connection', 'client', 'audit']

async function listenEvents(deps: EventDeps, request: Request): Promise<Response> {
  const { authorizer, events, every, watchStream } = deps
  // Streams of events are the console's.
  if (deps.consoleSessions === undefined) throw notFound()
  const context = await authorizer.authenticate(request) // 401, 429
  const query = readQuery(request.url, ['namespace', 'types']) // 400
  const wanted = (query.get('types')?.split(',') ?? types) as EventType[]
  if (!wanted.every((type) => types.includes(type)))
    throw invalidRequest(`types: must be one or more of ${types.join(', ')}, with commas between them`)
  using held = holdStream(deps, context) // 429
  const listener = new Listening(deps, context, { namespace: query.get('namespace'), types: new Set(wanted) })
  held.defer(events.listen(context.caller, (event) => listener.hear(event))) // 429
  held.defer(every(commentMs, () => listener.comment()))
  held.defer(
    watchStream(
      // Somebody's rights may have changed, although the credential is good.
      async () => listener.look(await authorizer.authenticate(request, true)),
      () => listener.stream.close(),
    ),
  )
  listener.resume(request.headers.get('last-event-id'))
  return listener.stream.response(held.move())
}

/** One listener: what it hears, in order, as far as it may see it and takes it. */
class Listening {
  /** When the client has taken something, there is room again, and perhaps a gap to tell of. */
  readonly stream = new EventStream(unreadBytesMax, () => void this.#run())
  readonly #deps: EventDeps
  readonly #wanted: Wanted
  #visible: VisibleEvents
  #context: RequestContext
  #waiting: KeptEvent[] = []
  readonly #serve = () => void this.#run()
  #isBusy = false
  /** Whether events were dropped, and the listener does not know yet. */
  #hasGap = false

  constructor(deps: EventDeps, context: RequestContext, wanted: Wanted) {
    this.#deps = deps
    this.#wanted = wanted
    this.#context = context
    this.#visible = visibleTo(deps, context, wanted)
  }

  /** Begins behind the event of this id, or says that some are missing. */
  resume(id: string | null): void {
    this.comment()
    const missed = id === null ? [] : this.#deps.events.after(id)
    if (missed === undefined) this.#hasGap = true
    for (const event of missed ?? []) this.hear(event)
    void this.#run()
  }

  hear(event: KeptEvent): void {
    if (this.#visible.isHidden(event)) return
    if (this.#waiting.length >= waitingMax || this.stream.isFull) {
      this.#waiting = []
      this.#hasGap = true
    } else this.#waiting.push(event)
    this.#deps.events.wake(this.#serve)
  }

  /** The caller as it is now. */
  async look(context: RequestContext): Promise<void> {
    // The same directory: nothing that decides has changed.
    if (context.directory === this.#context.directory) return
    this.#context = context
    this.#visible = visibleTo(this.#deps, context, this.#wanted)
  }

  comment(): void {
    if (!this.stream.isFull) this.stream.write(':\n\n')
  }

  get #isReady(): boolean {
    const { isOpen, isFull } = this.stream
    return isOpen && !isFull && (this.#hasGap || this.#waiting.length > 0)
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      let heard = 0
      for (; heard < heardAtOnce && this.#isReady; heard += 1) {
        if (this.#hasGap) this.stream.write('event: gap\ndata: {}\n\n')
        this.#hasGap = false
        const event = this.#waiting.shift()
        const bytes = event && (await this.#visible.bytesOf(event))
        if (bytes !== undefined) this.stream.write(bytes)
      }
      const { time } = this.#deps.fairness
      // Of all its streams together, beside its requests: others cause the events.
      const owner = ownerOf(listenerOf(this.#context.caller))
      time.spend(owner, heard * hearingMs)
      await time.pause(owner)
    } catch {
      // The store cannot be read just now: what was missed is not known.
      this.#hasGap = true
      return
    } finally {
      this.#isBusy = false
    }
    // Those that came in the meantime.
    if (this.#isReady) this.#deps.events.wake(this.#serve)
  }
}
