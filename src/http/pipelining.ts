/**
 * Requests that a client sends on one connection without waiting for answers (RFC 9112, 9.3.2). The runtime reads all
 * that have arrived before it looks at another connection, so thousands on each of a few connections would hold up
 * everybody. Past a bound the connection is closed with the next answer, which drops what follows.
 */

import { pipelinedBusyRequests, pipelinedRequestsMax, pipelinedWindowMs } from '../limits.ts'

export interface Pipelining {
  /** Whether the connection of the request sends too many. `now`: when the request arrived, in milliseconds. */
  isTooMuch(request: Request, now: number): boolean
}

/** `portOf`: the client's port, which differs for each of its connections; it takes two microseconds to ask. */
export function createPipelining(portOf: (request: Request) => string): Pipelining {
  let began = Number.NEGATIVE_INFINITY
  let requests = 0
  const byPort = new Map<string, number>()
  return {
    isTooMuch(request, now) {
      if (now - began >= pipelinedWindowMs) {
        began = now
        requests = 0
        byPort.clear()
      }
      requests += 1
      // Nobody waits for so few, whoever sends them.
      if (requests <= pipelinedBusyRequests) return false
      const port = portOf(request)
      const count = (byPort.get(port) ?? 0) + 1
      byPort.set(port, count)
      return count > pipelinedRequestsMax
    },
  }
}
