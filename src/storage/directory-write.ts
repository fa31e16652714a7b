/**
 * Writes to the directory that depend on more than one record: whether a namespace is free, whether an organization
 * still owns one. Each is decided on what is stored and committed only if the directory has not changed since;
 * otherwise it is decided again. Writes of this process wait for one another before (`fairness/queue.ts`).
 */

import { decideAgain } from './decide-again.ts'
import { directoryVersionKey } from './keys.ts'
import type { Store, Write } from './store.ts'
import { checkOf, newVersion } from './versions.ts'

/**
 * A write and its result. Without `write`, nothing is written. `checks`: all that the write depends on, where that is
 * less than the directory. So others' changes, at other replicas too, do not hold up one that takes access away.
 */
export interface DirectoryChange<T> {
  readonly write?: Pick<Write, 'checks' | 'puts' | 'deletes' | 'counts' | 'fromReserve' | 'holder'>
  readonly result: T
  /** Makes the error where nothing was written, because a count would exceed its bound. Needed if one has a bound. */
  readonly full?: () => Error
}

/**
 * Resolves with the result when the write is durable. `decide` may run several times. Throws what it throws, and
 * StoreError `unavailable` if others change the directory all the time.
 */
export async function changeDirectory<T>(
  store: Store,
  decide: () => Promise<DirectoryChange<T>>,
  attemptsMax?: number,
): Promise<T> {
  const decideOnce = async () => {
    const check = await checkOf(store, directoryVersionKey)
    const { write, result, full } = await decide()
    if (write === undefined) return result
    const committed = await store.commit({
      ...write,
      checks: write.checks ?? [check],
      puts: [...(write.puts ?? []), newVersion(directoryVersionKey)],
    })
    if (committed.ok) return result
    if (committed.full.length > 0 && full !== undefined) throw full()
    return 'again'
  }
  return decideAgain('the directory', decideOnce, attemptsMax)
}
