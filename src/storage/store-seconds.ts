/** The time on which all machines that share a store agree. */

import type { Clock } from '../clock.ts'
import type { Store } from './store.ts'

/** Unix seconds by the clock of the database; without one, of this machine. Rejects as `Store.health`. */
export async function storeSeconds(store: Pick<Store, 'health'>, clock: Pick<Clock, 'now'>): Promise<number> {
  const { clockOffsetMs } = await store.health()
  return Math.floor((clock.now() + clockOffsetMs) / 1000)
}
