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
import { visibleTo, type Wanted } from './visible-events.ts'

/** Contract 22.4: bytes of events that a client has not read yet from its stream. Past it: postern drops the events that follow, and the client gets the event `gap` when it reads on. */
const unreadBytesMax = 2 ** 20
/** Events that wait to be looked at for a listener, each of some hundred bytes. Past it: as for `unreadBytesMax`. */
const waitingMax = 1000
/** Events that one listener is served before others are. Past it: the rest when its turn comes again. */
const heardAtOnce = 8
/** Milliseconds that an event takes for a listener, with its part of the socket's work. */
const hearingMs = 0.1
/** Milliseconds after which an idle stream carries a comment. */
const commentMs = 15_000

interface EventDeps extends HealthDeps {
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
  const listener = createListener(deps, context, { namespace: query.get('namespace'), types: new Set(wanted) })
  using held = new DisposableStack()
  held.defer(events.listen(context.caller, (event) => listener.hear(event))) // 429
  held.use(holdStream(deps, context)) // 429
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
function createListener(deps: EventDeps, context: RequestContext, wanted: Wanted) {
  const { events, fairness } = deps
  // Of all its streams together, beside its requests: others cause the events.
  const owner = ownerOf(listenerOf(context.caller))
  // When the client has taken something, there is room again, and perhaps a gap to tell of.
  const stream = new EventStream(unreadBytesMax, serve)
  let { directory } = context
  let visible = visibleTo(deps, context, wanted)
  let waiting: KeptEvent[] = []
  let isBusy = false
  /** Whether events were dropped, and the listener does not know yet. */
  let hasGap = false

  function serve(): void {
    void run()
  }

  const isReady = () => stream.isOpen && !stream.isFull && (hasGap || waiting.length > 0)

  async function run(): Promise<void> {
    if (isBusy) return
    isBusy = true
    try {
      let heard = 0
      for (; heard < heardAtOnce && isReady(); heard += 1) {
        if (hasGap) stream.write('event: gap\ndata: {}\n\n')
        hasGap = false
        const event = waiting.shift()
        const bytes = event && (await visible.bytesOf(event))
        if (bytes !== undefined) stream.write(bytes)
      }
      fairness.time.spend(owner, heard * hearingMs)
      await fairness.time.pause(owner)
    } catch {
      // The store cannot be read just now: what was missed is not known.
      hasGap = true
      return
    } finally {
      isBusy = false
    }
    // Those that came in the meantime.
    if (isReady()) events.wake(serve)
  }

  function hear(event: KeptEvent): void {
    if (visible.isHidden(event)) return
    if (waiting.length >= waitingMax || stream.isFull) {
      waiting = []
      hasGap = true
    } else waiting.push(event)
    events.wake(serve)
  }

  function comment(): void {
    if (!stream.isFull) stream.write(':\n\n')
  }

  return {
    stream,
    hear,
    comment,
    /** Begins behind the event of this id, or says that some are missing. */
    resume(id: string | null): void {
      comment()
      const missed = id === null ? [] : events.after(id)
      if (missed === undefined) hasGap = true
      for (const event of missed ?? []) hear(event)
      serve()
    },
    /** The caller as it is now. */
    look(now: RequestContext): void {
      // The same directory: nothing that decides has changed.
      if (now.directory === directory) return
      directory = now.directory
      visible = visibleTo(deps, now, wanted)
    },
  }
}
