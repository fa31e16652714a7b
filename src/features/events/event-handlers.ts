/** `GET /events`: what happens, as a stream of events (contract, 22.4). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { invalidRequest, notFound, rateLimited } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Fairness } from '../../fairness/fairness.ts'
import { listenerOf, ownerOf } from '../../fairness/owner.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { eventStream } from '../../http/respond.ts'
import { openStreamBytes } from '../gateway/client-response.ts'
import type { Every, WatchStream } from '../gateway/open-streams.ts'
import type { HealthDeps } from '../health/stored-health.ts'
import type { EventLog, EventType, KeptEvent } from './event-log.ts'
import { VisibleEvents } from './visible-events.ts'

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
  const { authorizer, events, fairness, sockets, every, watchStream } = deps
  // Streams of events are the console's.
  if (deps.consoleSessions === undefined) throw notFound()
  const context = await authorizer.authenticate(request) // 401, 429
  const query = readQuery(request.url, ['namespace', 'types']) // 400
  const wanted = (query.get('types')?.split(',') ?? types) as EventType[]
  if (!wanted.every((type) => types.includes(type)))
    throw invalidRequest(`types: must be one or more of ${types.join(', ')}, with commas between them`)
  const { caller } = context
  const filter = { namespace: query.get('namespace'), types: new Set(wanted) }
  // Of all its streams together, beside its requests: others cause the events.
  const owner = ownerOf(listenerOf(caller))
  const pace = async (heard: number) => {
    fairness.time.spend(owner, heard * hearingMs)
    await fairness.time.pause(owner)
  }
  const visibleTo = (current: RequestContext) => new VisibleEvents(deps, current, filter)
  const stream = new Listening(events, { visibleTo, pace }, context)
  const stopListening = events.listen(caller, (event) => stream.hear(event)) // 429
  if (!fairness.memory.take(caller, openStreamBytes)) {
    stopListening()
    throw rateLimited('This caller has too many streams open: close some', 1)
  }
  const ends = [
    () => fairness.memory.giveBack(caller, openStreamBytes),
    sockets.disableIdleTimeout(request),
    allowanceOf(request).hold(),
    stopListening,
    every(commentMs, () => stream.comment()),
    // Somebody's rights may have changed, although the credential is good.
    watchStream(
      async () => stream.look(await authorizer.authenticate(request, true)),
      () => stream.close(),
    ),
  ]
  stream.onEnd = () => {
    for (const end of ends.splice(0)) end()
  }
  stream.resume(request.headers.get('last-event-id'))
  return new Response(stream.body, { headers: eventStream })
}

interface ListeningOptions {
  readonly visibleTo: (context: RequestContext) => VisibleEvents
  /** Counts so many events, and waits until the owner may hear more. */
  readonly pace: (heard: number) => Promise<void>
}

/** One listener: what it hears, in order, as far as it may see it and takes it. */
class Listening {
  readonly body: ReadableStream<Uint8Array>
  onEnd = () => {}
  readonly #events: EventLog
  readonly #of: ListeningOptions
  #visible: VisibleEvents
  #context: RequestContext
  #waiting: KeptEvent[] = []
  readonly #serve = () => void this.#run()
  #isBusy = false
  /** Whether events were dropped, and the listener does not know yet. */
  #hasGap = false
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(events: EventLog, of: ListeningOptions, context: RequestContext) {
    this.#events = events
    this.#of = of
    this.#context = context
    this.#visible = of.visibleTo(context)
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        // It has taken something: there is room again, and perhaps a gap to tell of.
        pull: () => void this.#run(),
        cancel: () => this.onEnd(),
      },
      { highWaterMark: unreadBytesMax, size: (chunk) => chunk?.length ?? 0 },
    )
  }

  /** Begins behind the event of this id, or says that some are missing. */
  resume(id: string | null): void {
    this.comment()
    const missed = id === null ? [] : this.#events.after(id)
    if (missed === undefined) this.#hasGap = true
    for (const event of missed ?? []) this.hear(event)
    void this.#run()
  }

  hear(event: KeptEvent): void {
    if (this.#visible.isHidden(event)) return
    if (this.#waiting.length >= waitingMax || this.#isFull) {
      this.#waiting = []
      this.#hasGap = true
    } else this.#waiting.push(event)
    this.#events.wake(this.#serve)
  }

  /** The caller as it is now. */
  async look(context: RequestContext): Promise<void> {
    // The same directory: nothing that decides has changed.
    if (context.directory === this.#context.directory) return
    this.#context = context
    this.#visible = this.#of.visibleTo(context)
  }

  comment(): void {
    if (!this.#isFull) this.#write(':\n\n')
  }

  close(): void {
    this.onEnd()
    const controller = this.#controller
    this.#controller = undefined
    controller?.close()
  }

  get #isReady(): boolean {
    return this.#controller !== undefined && !this.#isFull && (this.#hasGap || this.#waiting.length > 0)
  }

  get #isFull(): boolean {
    return (this.#controller?.desiredSize ?? 1) <= 0
  }

  async #run(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      let heard = 0
      for (; heard < heardAtOnce && this.#isReady; heard += 1) {
        if (this.#hasGap) this.#write('event: gap\ndata: {}\n\n')
        this.#hasGap = false
        const event = this.#waiting.shift()
        const bytes = event && (await this.#visible.bytesOf(event))
        if (bytes !== undefined) this.#controller?.enqueue(bytes)
      }
      await this.#of.pace(heard)
    } catch {
      // The store cannot be read just now: what was missed is not known.
      this.#hasGap = true
      return
    } finally {
      this.#isBusy = false
    }
    // Those that came in the meantime.
    if (this.#isReady) this.#events.wake(this.#serve)
  }

  #write(text: string): void {
    this.#controller?.enqueue(Buffer.from(text))
  }
}
