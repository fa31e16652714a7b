/**
 * Requests to one address: wires that are kept for the next exchange, and no more of them being connected than
 * allowed.
 */

import { pendingConnectsMax, socketIdleMs } from '../limits.ts'
import { type OutgoingRequest, wireRequest } from './head.ts'
import type { Abort, Endpoint, HttpConnection, OpenHttpConnection, ResponseHandler } from './http-connection.ts'

export interface ConnectionPool {
  /** Throws TypeError for a header that cannot be sent, Error where too many sockets are being connected. */
  send(request: OutgoingRequest, receiver: ResponseHandler): Abort
  /** What is under way ends as it would; nothing is kept after it. */
  close(): void
}

export function createConnectionPool(origin: Endpoint, open: OpenHttpConnection): ConnectionPool {
  /** By how long they were unused. */
  const idle: { readonly wire: HttpConnection; readonly until: number }[] = []
  let connecting = 0
  let sweep: Timer | undefined
  let isClosed = false

  function keep(wire: HttpConnection, milliseconds: number): boolean {
    if (isClosed) return false
    idle.push({ wire, until: performance.now() + milliseconds })
    // One timer for all: one for each of them would cost every exchange two.
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
    // The last one: the other side is the least likely to be closing it at this moment.
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.until > performance.now()) return last.wire
      last.wire.close()
    }
    if (connecting >= pendingConnectsMax) throw new Error('it takes too long to connect')
    connecting += 1
    return open(origin, { keep, leave, connected })
  }

  return {
    send(request, receiver) {
      const ready = wireRequest(request)
      return take().start(ready, receiver)
    },
    close() {
      isClosed = true
      clearTimeout(sweep)
      for (const { wire } of [...idle]) wire.close()
    },
  }
}
