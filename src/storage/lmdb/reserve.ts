/**
 * The disk space that is kept for revocations, divided among owners: each has a few of them. Otherwise ten thousand
 * revocations of one owner would use it up, and a stolen key of another owner could not be revoked.
 */

import { StoreError } from '../store.ts'

/** Ours: revocations of one owner while deletions are 503 because the disk is nearly full; each revocation writes about ten kilobytes. Past it: 503. */
export const scarceRevocationsMax = 50

export type Reserve = ReturnType<typeof createReserve>

export function createReserve() {
  const taken = new Map<string, number>()
  return {
    /** Throws StoreError `unavailable` if the owner has had its part. */
    take(owner: string): void {
      const count = taken.get(owner) ?? 0
      if (count >= scarceRevocationsMax)
        throw new StoreError(
          'unavailable',
          'the disk is nearly full, and this owner has used its share of the rest: free some space',
        )
      taken.set(owner, count + 1)
    },
    /** There is space again: all have their part again. */
    refill: () => taken.clear(),
  }
}
