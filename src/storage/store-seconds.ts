/** The time on which all machines that share a store agree. */

import type { Clock } from '../clock.ts'
import type { Store } from './store.ts'

/** Unix seconds by the clock of the database; by that of this machine for a store on it. Rejects as `Store.health`. */
export async function storeSeconds(
  store: Pick<Store, 'health' | 'isRemote'>,
  clock: Pick<Clock, 'now'>,
): Promise<number> {
  // The health of a store here needs free disk, which a revocation does not.
  const { clockOffsetMs } = store.isRemote === true ? await store.health() : { clockOffsetMs: 0 }
  return Math.floor((clock.now() + clockOffsetMs) / 1000)
}
