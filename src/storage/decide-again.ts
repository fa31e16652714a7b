/**
 * Writes that depend on what is stored: each is decided on a record, and again if that has changed before the commit; a
 * bounded number of times, as many writers of one record would keep the store busy for ever.
 */

import { StoreError } from './store.ts'

/** Ours: how often postern decides again on one write, because other writes change the directory, or the same record, in between. Past it: 503. */
export const writeAttemptsMax = 20
/** Ours: how often postern decides again on one change that takes access away, because other replicas change the directory in between; about one attempt in six is written before another replica changes the directory. Past it: 503. */
export const removalAttemptsMax = 100

/**
 * Resolves with the first result of `decide` that is not 'again'. Throws what it throws, and StoreError `unavailable`
 * after `attemptsMax` times. `what`: the record, for that error. `attempt`: from 0.
 */
export async function decideAgain<T>(
  what: string,
  decide: (attempt: number) => Promise<T | 'again'>,
  attemptsMax = writeAttemptsMax,
): Promise<T> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const result = await decide(attempt)
    if (result !== 'again') return result
  }
  throw new StoreError('unavailable', `${what} changes too fast: try again`)
}
