/**
 * Addresses of names, asked for by c-ares over sockets of its own: the system's `getaddrinfo` takes a thread of the
 * pool that the store commits on, for as long as a name server is silent. It reads /etc/hosts and /etc/resolv.conf,
 * and knows no other source of names.
 *
 * A name is asked for once at a time, and an answer, a failure too, holds for some seconds.
 */

import { LRUCache } from 'lru-cache'
import type { Holder, Shares } from '../http/shares.ts'
import { createShares } from '../http/shares.ts'
import { dnsCacheEntriesMax, dnsCacheTtlMs, lookupTimeoutMs, pendingLookupsMax } from '../limits.ts'

/** Resolves a name to all of its addresses; rejects where there are none. */
export type Lookup = (host: string) => Promise<readonly string[]>

export interface Names {
  /** All addresses of a name; none where it has none, or none that came in time. Rejects with TooManyLookups. */
  addressesOf(host: string, holder: Holder, timeoutMs: number): Promise<readonly string[]>
}

/** The caller has asked for too many names that were not answered yet. */
export class TooManyLookups extends Error {}

interface Known {
  readonly addresses: readonly string[]
  /** By `performance.now()`. */
  readonly until: number
}

export function createNames(lookup: Lookup = lookupByCares): Names {
  const known = new LRUCache<string, Known>({ max: dnsCacheEntriesMax })
  const underWay = new Map<string, Promise<readonly string[]>>()
  const shares: Shares = createShares(pendingLookupsMax)

  function ask(host: string, holder: Holder): Promise<readonly string[]> {
    if (!shares.take(holder, 1)) throw new TooManyLookups('too many names are being looked up: try again')
    const asked = lookup(host)
      .catch(() => [])
      .finally(() => shares.giveBack(holder, 1))
    // Who waits is told in time; the look-up itself may go on, and keeps its share until it ends.
    const answer = Promise.race([asked, after(lookupTimeoutMs)])
      .then((addresses) => {
        known.set(host, { addresses, until: performance.now() + dnsCacheTtlMs })
        return addresses
      })
      .finally(() => underWay.delete(host))
    underWay.set(host, answer)
    return answer
  }

  return {
    async addressesOf(host, holder, timeoutMs) {
      const last = known.get(host)
      if (last !== undefined && last.until > performance.now()) return last.addresses
      return Promise.race([underWay.get(host) ?? ask(host, holder), after(timeoutMs)])
    },
  }
}

function after(milliseconds: number): Promise<readonly string[]> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds, []).unref()
  })
}

async function lookupByCares(host: string): Promise<string[]> {
  const found = await Bun.dns.lookup(host, { backend: 'c-ares' })
  return found.map(({ address }) => address)
}
