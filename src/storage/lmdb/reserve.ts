/**
 * The disk space that is kept for revocations, divided among owners: each has a few of them. Otherwise ten thousand
 * revocations of one owner would use it up, and a stolen key of another owner could not be revoked. Of these, no key or
 * token may use up what the owner's others need to revoke it.
 */

import { type Holder, StoreError } from '../store.ts'

/** Ours: revocations of one owner while the disk is so full that postern answers deletions with 503 (`deletionBytesMin`); each revocation writes about ten kilobytes. An API key and its tokens together get at most half of what the owner's other keys and their tokens leave. A token that was minted with the key, and all tokens minted from this token, form a family. A family gets at most half of what the key itself and its other families leave of the key's part. The key itself gets all that its families leave of this part, and always at least `keyRevocationsMin` revocations. Past it: 503. */
export const scarceRevocationsMax = 50
/** Ours: revocations that an API key itself, not one of its tokens, may always make on a disk that is nearly full, even if the owner's other keys and tokens have used up `scarceRevocationsMax`. Past it: as for `scarceRevocationsMax`. */
export const keyRevocationsMin = 2

export type Reserve = ReturnType<typeof createReserve>

/** A command, which has no key. */
const command: Holder = { keyId: '', family: '' }

export function createReserve() {
  /** By owner; by owner and key; by owner, key and family. */
  const taken = new Map<string, number>()
  return {
    /** Throws StoreError `unavailable` if the holder has had its part. */
    take({ keyId, family, userId = keyId }: Holder = command): void {
      const names = [userId, `${userId}\0${keyId}`, `${userId}\0${keyId}\0${family}`]
      const [ofOwner = 0, ofKey = 0, own = 0] = names.map((name) => taken.get(name) ?? 0)
      const room = Math.ceil((scarceRevocationsMax - (ofOwner - ofKey)) / 2)
      const left = room - (ofKey - own)
      const most = family === keyId ? Math.max(left, keyRevocationsMin) : Math.ceil(left / 2)
      if (own >= most)
        throw new StoreError(
          'unavailable',
          'the disk is nearly full, and this caller has used its share of the rest: free some space',
        )
      for (const name of names) taken.set(name, (taken.get(name) ?? 0) + 1)
    },
    /** There is space again: all have their part again. */
    refill: () => taken.clear(),
  }
}
