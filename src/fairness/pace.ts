/**
 * How much of the time one owner's bytes may take: those of other servers, and those of its own large answers. Another
 * server decides how much time its bytes cost: a response in chunks of one byte, or a stream of empty lines, takes a
 * hundred times as long as any other. So the time is measured, and past `ownerTimeShare` of it the rest waits.
 */

import { type Clock, systemClock } from '../clock.ts'
import { ownerTimeShare } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'

/** Milliseconds of an owner's work before it waits for its part of the time. Past it: as for `ownerTimeShare`. */
export const ownerBurstMs = 6

export interface Pace {
  /** Milliseconds until the owner's next bytes may be handled; 0 for now. */
  wait(): number
  /** Counts milliseconds that were spent, or soon will be. */
  spend(milliseconds: number): void
  /** Resolves when the owner's next bytes may be handled. */
  pause(): Promise<void>
}

export interface Paces {
  of(holder: Holder): Pace
  /** By the name of the owner. */
  ofOwner(owner: string): Pace
}

export function createPaces(clock: Clock = systemClock): Paces {
  /** When each owner will have paid for its reading. Owners who have paid are dropped. */
  const paidAt = new Map<string, number>()

  function dropPaid(): void {
    const at = clock.monotonic()
    for (const [owner, paid] of paidAt) if (paid <= at) paidAt.delete(owner)
  }

  const paces: Paces = {
    of: (holder) => paces.ofOwner(ownerOf(holder)),
    ofOwner(owner) {
      const wait = () => Math.max(0, (paidAt.get(owner) ?? 0) - clock.monotonic() - ownerBurstMs / ownerTimeShare)
      return {
        wait,
        // Again, as others of the owner may have been first.
        async pause() {
          for (let left = wait(); left > 0; left = wait()) await Bun.sleep(left)
        },
        spend(milliseconds) {
          if (paidAt.size >= 1000 && !paidAt.has(owner)) dropPaid()
          paidAt.set(owner, Math.max(paidAt.get(owner) ?? 0, clock.monotonic()) + milliseconds / ownerTimeShare)
        },
      }
    },
  }
  return paces
}
