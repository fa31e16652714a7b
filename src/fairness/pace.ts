/**
 * How much of the time one owner's bytes may take: those of other servers, and those of its own large answers. Another
 * server decides how much time its bytes cost: a response in chunks of one byte, or a stream of empty lines, takes a
 * hundred times as long as any other. So the time is measured, and past `ownerTimeShare` of it the rest waits.
 */

import { type Clock, systemClock } from '../clock.ts'
import { ownerTimeShare } from '../limits.ts'

/** Milliseconds of an owner's work before it waits for its part of the time. Past it: as for `ownerTimeShare`. */
export const ownerBurstMs = 6

/**
 * Milliseconds that an owner waits at most for work that was done without waiting. The holder of one narrow token could
 * otherwise lock out all other requests of its owner for an hour. Past it: such work counts no more.
 */
export const owedMsMax = 5000

/** By the name of the owner (`ownerOf`). */
export class Paces {
  readonly #clock: Clock
  /** When each owner will have paid for its reading. Owners who have paid are dropped. */
  readonly #paidAt = new Map<string, number>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Milliseconds until the owner's next bytes may be handled; 0 for now. */
  wait(owner: string): number {
    const paidAt = this.#paidAt.get(owner)
    if (paidAt === undefined) return 0
    return Math.max(0, paidAt - this.#clock.monotonic() - ownerBurstMs / ownerTimeShare)
  }

  /** Counts milliseconds that were spent, or soon will be. */
  spend(owner: string, milliseconds: number): void {
    const at = this.#clock.monotonic()
    const paidAt = this.#paidAt.get(owner)
    if (paidAt === undefined && this.#paidAt.size >= 1000)
      for (const [other, paid] of this.#paidAt) if (paid <= at) this.#paidAt.delete(other)
    const owed = Math.max(paidAt ?? 0, at) + milliseconds / ownerTimeShare
    this.#paidAt.set(owner, Math.min(owed, at + ownerBurstMs / ownerTimeShare + owedMsMax))
  }

  /**
   * Resolves when the owner's next bytes may be handled, and counts what that will take at once: forty requests that
   * wait together would all find that the owner has paid.
   */
  async pause(owner: string, milliseconds = 0): Promise<void> {
    // Again, as others of the owner may have been first.
    for (let left = this.wait(owner); left > 0; left = this.wait(owner)) await Bun.sleep(left)
    if (milliseconds > 0) this.spend(owner, milliseconds)
  }
}
