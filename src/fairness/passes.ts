/**
 * Bounds the requests that one pass of the event loop answers. The runtime hands over all requests that a connection
 * has sent ahead (RFC 9112, 9.3.2) before it reads another connection: thousands on each of forty connections held
 * everybody for a second. Past the bound a request waits for the next pass. The runtime closes a connection on which
 * another request arrives meanwhile, and drops the rest of what was sent ahead.
 *
 * The runtime also accepts connections, and reads each at once (`http/listening-sockets.ts`). A request that waits
 * costs more than one that is refused, since its URL and its headers are made: clients that come again at once, without
 * waiting for an answer, made thousands wait in one pass. So in a pass that lasts long only some of a network wait.
 */

import { type Clock, systemClock } from '../clock.ts'
import { type Holder, networkOf, ownerOf } from './owner.ts'
import { Rounds } from './rounds.ts'

/** Ours: requests that postern answers in one pass of the event loop, each in ten microseconds or more; a client that waits for its answers has one request on each connection. Past it: postern answers further requests in the next pass, and a connection that has sent requests ahead is closed. */
export const requestsPerPassMax = 100
/** Ours: requests of one network that may wait for the next pass of the event loop when the present pass has lasted longer than `longPassMs`. Past it: 429. */
export const waitingPerPassMax = 300
/** Ours: milliseconds that a pass of the event loop may last before `waitingPerPassMax` applies; until then, any number of requests may wait for the next pass. Past it: `waitingPerPassMax` of each network may. */
export const longPassMs = 4
/** Ours: requests of one owner that postern handles in one pass of the event loop; streams of the owner that end count too. Past it: further ones wait for the next pass. */
export const ownerRequestsPerPassMax = 8

type Answer = (request: Request) => Promise<Response> | Response

interface InPasses {
  readonly sockets: {
    addressOf(request: Request): string
    /** Undefined if the client has closed it. */
    connectionOf(request: Request): string | undefined
  }
  /** Makes the answer to one request too many. `closes`: and the connection ends, with all that was sent ahead on it. */
  readonly refuse: (closes?: boolean) => Response
  /** Whether the runtime makes the request's URL in no time to speak of, as it does once the request waits. */
  readonly mayWait: (request: Request) => boolean
  readonly clock?: Clock
}

/** `answer`, within the bound. `atEnd` runs a function when this pass has ended. */
export function inPasses(
  answer: Answer,
  { sockets, refuse, mayWait, clock = systemClock }: InPasses,
  atEnd: (run: () => void) => void = setImmediate,
): Answer {
  let requests = 0
  /** When this pass had half as many requests as it answers, on the monotonic clock. */
  let began = 0
  /** Requests past the bound, by network. */
  const late = new Map<string, number>()
  /** Connections on which a request was refused: to refuse all that a client sent ahead on one would take as long. */
  const refused = new Set<string>()
  const begin = () => {
    requests = 0
    late.clear()
    refused.clear()
  }
  return (request) => {
    requests += 1
    // Not at the first: most passes have few requests, and would pay for a function at their end.
    if (requests === requestsPerPassMax / 2) {
      began = clock.monotonic()
      atEnd(begin)
    }
    if (requests < requestsPerPassMax / 2) return answer(request)
    const connection = sockets.connectionOf(request)
    if (connection === undefined) return refuse()
    if (requests <= requestsPerPassMax) return answer(request)
    if (refused.has(connection)) return refuse(true)
    const network = networkOf(sockets.addressOf(request))
    const waiting = (late.get(network) ?? 0) + 1
    late.set(network, waiting)
    const isCrowded = waiting > waitingPerPassMax && clock.monotonic() - began > longPassMs
    if (isCrowded || !mayWait(request)) {
      refused.add(connection)
      return refuse()
    }
    return new Promise<void>((resolve) => atEnd(resolve)).then(() =>
      sockets.connectionOf(request) === undefined ? refuse() : answer(request),
    )
  }
}

/**
 * Milliseconds that a body may come after its head. Past it: the request waits for its part of a pass once more, as a
 * thousand clients may send the last bytes of theirs at once: forms held everybody for 300 ms.
 */
const lateBodyMs = 1

/** The body that is being received, in a pass in which its owner has room. Rejects with `rate_limited`. */
export async function receivedInPass<T>(
  owner: { pass(): Promise<void> | undefined },
  body: Promise<T>,
  clock: Clock = systemClock,
): Promise<T> {
  const began = clock.monotonic()
  const received = await body
  if (clock.monotonic() - began > lateBodyMs) await owner.pass()
  return received
}

/**
 * Forty requests of an owner may arrive in one pass and take half a millisecond each: the next request of another owner
 * would wait twenty milliseconds. With a part for each owner it waits for eight of them. The ends of streams, and of
 * requests to other servers that fail, are counted too: a thousand that ended in one pass held everybody for 200 ms.
 */
export function createOwnerPasses(atEnd: (run: () => void) => void = setImmediate) {
  /**
   * Requests of each owner in this pass, and those that wait: by family, as behind thousands of one token the owner's
   * own request would wait for a second.
   */
  const parts = new Map<string, { count: number; waiting?: Rounds<() => void> }>()
  let isEnding = false

  function endPass(): void {
    isEnding = false
    for (const [owner, part] of parts) {
      part.count = 0
      const { waiting } = part
      if (waiting === undefined || waiting.isEmpty) {
        parts.delete(owner)
        continue
      }
      while (!waiting.isEmpty && part.count < ownerRequestsPerPassMax) {
        part.count += 1
        waiting.next()?.job()
      }
    }
    endLater()
  }

  function endLater(): void {
    if (isEnding || parts.size === 0) return
    isEnding = true
    atEnd(endPass)
  }

  return {
    isFull: (holder: Holder) => (parts.get(ownerOf(holder))?.count ?? 0) >= ownerRequestsPerPassMax,
    /** Waits for a pass in which the owner has room, in rounds of its families; undefined in this one. */
    enter(holder: Holder): Promise<void> | undefined {
      const part = parts.getOrInsertComputed(ownerOf(holder), () => ({ count: 0 }))
      part.count += 1
      // Not at the first: most passes have few requests, and would pay for a function at their end.
      if (part.count === ownerRequestsPerPassMax || parts.size > ownerRequestsPerPassMax) endLater()
      if (part.count <= ownerRequestsPerPassMax) return undefined
      part.waiting ??= new Rounds()
      const { waiting } = part
      return new Promise((resolve) => void waiting.add(holder, resolve, Number.POSITIVE_INFINITY))
    },
  }
}
