/**
 * Refuses requests whose head takes long to read. The runtime makes a request's URL and its headers when somebody first
 * reads them, and when the request waits, and nobody can ask how long that will take. So this comes before all else: a
 * network has its part of each pass of the event loop, and what comes after it is not looked at.
 */

import { invalidRequest, notFound, PlatformError, rateLimited } from '../errors.ts'
import { hostCharsMax } from '../schema/url-host.ts'
import { errorResponse } from './error-response.ts'
import { notOurName } from './guard.ts'
import type { Handler } from './handler.ts'
import { pathOf } from './path.ts'

/** Ours: characters of the path of a request; no operation has a longer one. Past it: 404. */
export const pathCharsMax = 2048
/** Ours: characters of a request's URL, as many as the head of a request may have. Only one with raw characters, each of which the runtime writes with up to nine, has more. Past it: 400. */
export const requestUrlCharsMax = 16 * 1024

/** Headers that take no time to speak of. Past it: they are counted. */
const fewHeaders = 50
/** Milliseconds for the square of the number of headers: the runtime compares each with all before it. */
const msPerSquare = 4e-6
/** Milliseconds for a character of a URL. */
const msPerCharacter = 2.5e-6
/** Ours: milliseconds of a pass of the event loop in which postern reads costly heads of one network. Past it: its further requests in that pass get 429. */
export const headMsPerPassMax = 5
/**
 * Requests that are refused at once in one pass. One that waits has its URL and its headers made, so no refusal should
 * wait; but without a bound, requests that were sent ahead, and clients that come again as soon as a connection closes,
 * would never let the pass end. Past it: they wait, as in `inPasses`.
 */
export const refusalsPerPassMax = 200

/** `addressOf`: the client's address or network. `atEnd` runs a function when this pass has ended. */
export function refuseCostlyHeads(
  answer: Handler,
  addressOf: (request: Request) => string,
  atEnd: (run: () => void) => void = setImmediate,
): Handler {
  /** Milliseconds by network, in this pass. */
  const spent = new Map<string, number>()
  /** Whether a network has used up its part: no address is looked up before. */
  let isUsedUp = false
  let refusals = 0
  const begin = () => {
    spent.clear()
    isUsedUp = false
    refusals = 0
  }

  function spend(request: Request, milliseconds: number): void {
    const address = addressOf(request)
    const sum = (spent.get(address) ?? 0) + milliseconds
    if (spent.size === 0 && refusals === 0) atEnd(begin)
    spent.set(address, sum)
    isUsedUp ||= sum > headMsPerPassMax
  }

  function refused(error: PlatformError): Response | Promise<Response> {
    if (spent.size === 0 && refusals === 0) atEnd(begin)
    refusals += 1
    if (refusals <= refusalsPerPassMax) return errorResponse(error)
    return new Promise<void>((resolve) => atEnd(resolve)).then(() => errorResponse(error))
  }

  return (request) => {
    if (isUsedUp && (spent.get(addressOf(request)) ?? 0) > headMsPerPassMax)
      return refused(rateLimited('Too many long heads of this network at once', 1))
    const { headers } = request
    const { count } = headers
    if (count > fewHeaders) spend(request, count ** 2 * msPerSquare)
    // A host that is not ASCII takes a time that is quadratic in its length (`schema/url-host.ts`).
    if ((headers.get('host') ?? '').length > hostCharsMax) return refused(new PlatformError('forbidden', notOurName))
    const { url } = request
    if (url.length > pathCharsMax) {
      spend(request, url.length * msPerCharacter)
      if (url.length > requestUrlCharsMax)
        return refused(invalidRequest('the URL has characters that must be percent-encoded'))
      if (pathOf(url).length > pathCharsMax) return refused(notFound())
    }
    return answer(request)
  }
}
