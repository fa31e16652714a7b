/** The sockets of clients, by the request that arrived on each. */

import { setTimeout as timeout } from 'node:timers/promises'
import { idleTimeoutSeconds } from '../limits.ts'
import { clientAddress, type Network } from './client-address.ts'

export type ClientSockets = ReturnType<typeof createClientSockets>

/** `listening`: the server on which requests arrive. `trusted`: proxies whose word on a client's address counts. */
export function createClientSockets(
  listening: () => Pick<Bun.Server<undefined>, 'requestIP' | 'timeout'>,
  trusted: readonly Network[],
) {
  /** Suspends the runtime's idle timeout for a long request. Returns a function that restores it. */
  function disableIdleTimeout(request: Request): () => void {
    listening().timeout(request, 0)
    return () => listening().timeout(request, idleTimeoutSeconds)
  }

  return {
    disableIdleTimeout,
    addressOf: (request: Request) => clientAddress(listening().requestIP(request)?.address ?? '', request, trusted),
    /** A name of the connection that a request came on; undefined if the client has closed it. */
    connectionOf(request: Request): string | undefined {
      const peer = listening().requestIP(request)
      return peer === null ? undefined : `${peer.address} ${peer.port}`
    },
    /** Resolves after `milliseconds`, or when the client disconnects. */
    async wait(milliseconds: number, request: Request): Promise<void> {
      const restore = disableIdleTimeout(request)
      await timeout(milliseconds, undefined, { signal: request.signal }).catch(() => {})
      restore()
    },
  }
}
