/**
 * Bounds the requests that one pass of the event loop answers. The runtime hands over all requests that a connection
 * has sent ahead (RFC 9112, 9.3.2) before it reads another connection: thousands on each of forty connections held
 * everybody for a second. Past the bound a request waits for the next pass. The runtime closes a connection on which
 * another request arrives meanwhile, and drops the rest of what was sent ahead.
 */

import { requestsPerPassMax } from '../limits.ts'

type Answer = (request: Request) => Promise<Response> | Response

/** `answer`, within the bound. `atEnd` runs a function when this pass has ended. */
export function inPasses(answer: Answer, atEnd: (run: () => void) => void = setImmediate): Answer {
  let requests = 0
  const begin = () => {
    requests = 0
  }
  return (request) => {
    requests += 1
    // Not at the first: most passes have few requests, and would pay for a function at their end.
    if (requests === requestsPerPassMax / 2) atEnd(begin)
    if (requests <= requestsPerPassMax) return answer(request)
    return new Promise<void>((resolve) => atEnd(resolve)).then(() => answer(request))
  }
}
