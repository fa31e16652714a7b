/** The connections to one address: reuses idle wires, and limits how many are being connected at once. */

import { socketIdleMs } from '../limits.ts'
import { type OutgoingRequest, wireRequest } from './head.ts'
import type { Abort, Endpoint, HttpConnection, ResponseHandler } from './http-connection.ts'
import { openConnection } from './open-connection.ts'

/** Ours: connections that postern is opening to one MCP server, including abandoned ones that the system has not given up yet. Past it: 502. */
export const pendingConnectsMax = 2000

/** The connections to one address. */
export type ConnectionPool = ReturnType<typeof createConnectionPool>

/** A pool without connections. `open` is replaced in tests. */
export function createConnectionPool(origin: Endpoint, open = openConnection) {
  /** Idle wires, the one unused longest first. `until`: expiry, by `performance.now()`. */
  const idle: { readonly wire: HttpConnection; readonly until: number }[] = []
  let connecting = 0
  let sweep: Timer | undefined
  let isClosed = false

  function keep(wire: HttpConnection, milliseconds: number): boolean {
    if (isClosed) return false
    idle.push({ wire, until: performance.now() + milliseconds })
    // One timer for all wires: a timer each would have to be set and cleared for every exchange.
    sweep ??= setTimeout(closeUnused, socketIdleMs).unref()
    return true
  }

  function closeUnused(): void {
    const now = performance.now()
    for (const { wire, until } of [...idle]) if (until <= now) wire.close()
    sweep = idle.length === 0 ? undefined : setTimeout(closeUnused, socketIdleMs).unref()
  }

  function leave(wire: HttpConnection): void {
    const at = idle.findIndex((one) => one.wire === wire)
    if (at >= 0) idle.splice(at, 1)
  }

  function connected(): void {
    connecting -= 1
  }

  function take(): HttpConnection {
    // The most recently used one, which the server is least likely to be closing at this moment.
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.until > performance.now()) return last.wire
      last.wire.close()
    }
    if (connecting >= pendingConnectsMax) throw new Error('it takes too long to connect')
    connecting += 1
    return open(origin, { keep, leave, connected })
  }

  return {
    /** Throws TypeError for a header that cannot be sent, and Error past `pendingConnectsMax`. */
    send(request: OutgoingRequest, receiver: ResponseHandler): Abort {
      const ready = wireRequest(request)
      return take().start(ready, receiver)
    },
    /** Closes idle wires. Exchanges in progress complete, and their wires are then closed. */
    close(): void {
      isClosed = true
      clearTimeout(sweep)
      for (const { wire } of [...idle]) wire.close()
    },
  }
}
