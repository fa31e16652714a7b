/**
 * Resolves names with c-ares, which uses its own sockets. The system's `getaddrinfo` would block a thread of the pool
 * on which the store commits, for as long as a name server does not respond. c-ares reads /etc/hosts and
 * /etc/resolv.conf only; other sources of names (nsswitch) are ignored.
 *
 * Concurrent look-ups of a name share one query. Results, failures included, are cached for `dnsCacheTtlMs`.
 */

import { LRUCache } from 'lru-cache'
import type { Holder } from '../fairness/owner.ts'
import { Shares } from '../fairness/shares.ts'
import { dnsCacheEntriesMax, dnsCacheTtlMs, pendingLookupsMax } from '../limits.ts'
import { within } from '../within.ts'
import { UpstreamError } from './upstream.ts'

/** Ours: timeout of a DNS lookup. It is shorter than the timeout of the first contact with a new connection's server, so that the connection's error can say that the lookup was late. Past it: postern treats the name as one without an address until the cached result expires. */
export const lookupTimeoutMs = 4000

/** Resolves a name to all of its addresses. Rejects if there are none. */
export type Lookup = (host: string) => Promise<readonly string[]>

/** All addresses of a name; empty if none came in time. Rejects with UpstreamError. `shares`: of pending look-ups. */
export function createNames(lookup: Lookup = lookupByCares, shares = new Shares(pendingLookupsMax)) {
  /** `until`: expiry, by `performance.now()`. */
  const known = new LRUCache<string, { addresses: readonly string[]; until: number }>({ max: dnsCacheEntriesMax })
  const underWay = new Map<string, Promise<readonly string[]>>()

  function ask(host: string, holder: Holder): Promise<readonly string[]> {
    if (!shares.take(holder, 1)) throw new UpstreamError('down', `${host} ${tooManyNames}`)
    const asked = lookup(host)
      .catch(() => [])
      .finally(() => shares.giveBack(holder, 1))
    // Callers wait at most `lookupTimeoutMs`. The query itself may take longer, and counts as pending until it ends.
    const answer = within(lookupTimeoutMs, asked, () => [])
      .then((addresses) => {
        known.set(host, { addresses, until: performance.now() + dnsCacheTtlMs })
        return addresses
      })
      .finally(() => underWay.delete(host))
    underWay.set(host, answer)
    return answer
  }

  return async (host: string, holder: Holder, timeoutMs: number): Promise<readonly string[]> => {
    const last = known.get(host)
    if (last !== undefined && last.until > performance.now()) return last.addresses
    return within(timeoutMs, underWay.get(host) ?? ask(host, holder), () => [])
  }
}

const tooManyNames = 'could not be looked up: too many names are being looked up: try again'

async function lookupByCares(host: string): Promise<string[]> {
  const found = await Bun.dns.lookup(host, { backend: 'c-ares' })
  return found.map(({ address }) => address)
}
