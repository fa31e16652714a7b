/**
 * How fast the bytes of other servers are read for one owner. What a byte costs is up to the server that sends it: a
 * response in chunks of one byte, or a stream of empty lines, takes a hundred times as long as any other. So the time
 * is measured, and one owner's reading may take `readingTimeShare` of it; the bytes of the rest wait in their sockets.
 */

import { readingBurstMs, readingTimeShare } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'

export interface Pace {
  /** Milliseconds until the owner's next bytes may be read; 0 for now. */
  wait(): number
  /** Counts milliseconds that were spent, or soon will be. */
  spend(milliseconds: number): void
}

export interface Paces {
  of(holder: Holder): Pace
}

/** `now` is a monotonic clock in milliseconds. */
export function createPaces(now = () => performance.now()): Paces {
  /** When each owner will have paid for its reading. Owners who have paid are dropped. */
  const paidAt = new Map<string, number>()

  function dropPaid(): void {
    const at = now()
    for (const [owner, paid] of paidAt) if (paid <= at) paidAt.delete(owner)
  }

  return {
    of(holder) {
      const owner = ownerOf(holder)
      return {
        wait: () => Math.max(0, (paidAt.get(owner) ?? 0) - now() - readingBurstMs / readingTimeShare),
        spend(milliseconds) {
          if (paidAt.size >= 1000 && !paidAt.has(owner)) dropPaid()
          paidAt.set(owner, Math.max(paidAt.get(owner) ?? 0, now()) + milliseconds / readingTimeShare)
        },
      }
    },
  }
}
