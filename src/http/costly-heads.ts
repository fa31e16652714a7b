/**
 * Refuses requests whose head takes long to read. The runtime makes a request's URL and its headers when somebody first
 * reads them, and when the request waits, and nobody can ask how long that will take. So this comes first in a pass of
 * the event loop: a network has its part of it, and what comes after that is not looked at.
 */

import { invalidRequest, notFound, PlatformError, rateLimited } from '../errors.ts'
import { networkOf } from '../fairness/owner.ts'
import { inPasses } from '../fairness/passes.ts'
import { hostCharsMax } from '../schema/url-host.ts'
import type { ClientSockets } from './client-sockets.ts'
import { errorResponse, tooManyAtOnce } from './error-response.ts'
import { notOurName } from './guard.ts'
import type { Handler } from './handler.ts'
import { pathOf } from './path.ts'
import { endUnreadChunks } from './respond.ts'

/** Ours: characters of the path of a request; no operation has a longer one. Past it: 404. */
export const pathCharsMax = 2048
/** Ours: characters of a request's URL, as many as the head of a request may have. A URL can be longer only if it has characters that a client must percent-encode and did not: the runtime writes each such character with up to nine. Past it: 400. */
export const requestUrlCharsMax = 16 * 1024

/** Headers that take no time to speak of. Past it: they are counted. */
const fewHeaders = 50
/** Milliseconds for the square of the number of headers: the runtime compares each with all before it. */
const msPerSquare = 4e-6
/** Milliseconds for a character of a URL. */
const msPerCharacter = 2.5e-6
/** The same where the runtime has written raw characters with up to nine. */
const rawMsPerCharacter = 1e-5
/** Ours: milliseconds that postern spends, in one pass of the event loop, on costly request heads from one network. Past it: further requests from this network in the same pass get 429. */
export const headMsPerPassMax = 5

/** `answer`, within the bounds of a pass of the event loop, for requests whose heads take no time to speak of. */
export function withinPasses(answer: Handler, sockets: Pick<ClientSockets, 'addressOf' | 'connectionOf'>): Handler {
  const bounded = refuseCostlyHeads(answer, sockets.addressOf)
  return inPasses(bounded, { sockets, refuse: tooManyAtOnce, mayWait: hasShortHostHeader })
}

/** A host that is not ASCII takes a time that is quadratic in its length (`schema/url-host.ts`). */
const hasShortHostHeader = ({ headers }: Request) => (headers.get('host') ?? '').length <= hostCharsMax

/** `addressOf`: the client's address. `atEnd` runs a function when this pass has ended. */
export function refuseCostlyHeads(
  answer: Handler,
  addressOf: (request: Request) => string,
  atEnd: (run: () => void) => void = setImmediate,
): Handler {
  /** Milliseconds by network, in this pass. */
  const spent = new Map<string, number>()
  /** Whether a network has used up its part: no address is looked up before. */
  let isUsedUp = false
  const begin = () => {
    spent.clear()
    isUsedUp = false
  }

  function spend(request: Request, milliseconds: number): void {
    const network = networkOf(addressOf(request))
    const sum = (spent.get(network) ?? 0) + milliseconds
    if (spent.size === 0) atEnd(begin)
    spent.set(network, sum)
    isUsedUp ||= sum > headMsPerPassMax
  }

  /** Undefined for a request whose head may be read. */
  function refusalOf(request: Request): PlatformError | undefined {
    if (isUsedUp && (spent.get(networkOf(addressOf(request))) ?? 0) > headMsPerPassMax)
      return rateLimited('Too many long heads of this network at once', 1)
    const { count } = request.headers
    if (count > fewHeaders) spend(request, count ** 2 * msPerSquare)
    if (!hasShortHostHeader(request)) return new PlatformError('forbidden', notOurName)
    const { url } = request
    if (url.length <= pathCharsMax) return undefined
    const isRaw = url.length > requestUrlCharsMax
    spend(request, url.length * (isRaw ? rawMsPerCharacter : msPerCharacter))
    if (isRaw) return invalidRequest('the URL has characters that must be percent-encoded')
    return pathOf(url).length > pathCharsMax ? notFound() : undefined
  }

  return (request) => {
    const refusal = refusalOf(request)
    return refusal === undefined ? answer(request) : endUnreadChunks(request, errorResponse(refusal))
  }
}
