/**
 * Refuses, before all else, requests whose URL would take long to make. The runtime makes it when somebody first reads
 * it and when the request waits, and nobody can ask how long it will be.
 */

import { PlatformError, rateLimited } from '../errors.ts'
import { hostCharsMax } from '../schema/url-host.ts'
import { errorResponse } from './error-response.ts'
import { notOurName } from './guard.ts'
import type { Handler } from './handler.ts'
import { mayBeLong } from './unread-body.ts'

/** Characters of a URL that takes no time to speak of. Past it: it is counted. */
export const shortUrlChars = 4096
/** Ours: characters of longer URLs of one network that postern reads in one pass of the event loop, in five milliseconds. Past it: 429. */
export const longUrlCharsPerPassMax = 2 * 2 ** 20

/** `addressOf`: the client's address or network. `atEnd` runs a function when this pass has ended. */
export function refuseCostlyUrls(
  answer: Handler,
  addressOf: (request: Request) => string,
  atEnd: (run: () => void) => void = setImmediate,
): Handler {
  /** Characters of long URLs by network, in this pass. */
  const read = new Map<string, number>()
  /** Whether a network has used up its part: no address is looked up before. */
  let isUsedUp = false
  const begin = () => {
    read.clear()
    isUsedUp = false
  }
  return (request) => {
    // A host that is not ASCII takes a time that is quadratic in its length (`schema/url-host.ts`).
    if ((request.headers.get('host') ?? '').length > hostCharsMax)
      return refused(request, new PlatformError('forbidden', notOurName))
    if (isUsedUp && (read.get(addressOf(request)) ?? 0) > longUrlCharsPerPassMax)
      return refused(request, rateLimited('Too many long URLs of this network at once', 1))
    const { length } = request.url
    if (length > shortUrlChars) {
      const address = addressOf(request)
      const characters = (read.get(address) ?? 0) + length
      if (read.size === 0) atEnd(begin)
      read.set(address, characters)
      isUsedUp ||= characters > longUrlCharsPerPassMax
    }
    return answer(request)
  }
}

function refused(request: Request, error: PlatformError): Response {
  const response = errorResponse(error)
  if (mayBeLong(request)) response.headers.set('connection', 'close')
  return response
}
