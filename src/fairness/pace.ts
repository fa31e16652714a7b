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

/** When an owner will have paid, by the clock. */
interface Paid {
  all: number
  /**
   * For work that waits for its owner's time, at half the speed. Otherwise the holder of one narrow token could keep all
   * other work of its owner waiting, with requests that wait for nothing.
   */
  waiting: number
}

/** By the name of the owner (`ownerOf`). */
export class Paces {
  readonly #clock: Clock
  /** Owners who have paid are dropped. */
  readonly #paidAt = new Map<string, Paid>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Milliseconds until the owner's next bytes may be handled; 0 for now. */
  wait(owner: string): number {
    const paid = this.#paidAt.get(owner)
    if (paid === undefined) return 0
    const paidAt = Math.min(paid.all, paid.waiting)
    return Math.max(0, paidAt - this.#clock.monotonic() - ownerBurstMs / ownerTimeShare)
  }

  /** Counts milliseconds that were spent, or soon will be. */
  spend(owner: string, milliseconds: number): void {
    this.#count(owner, milliseconds, 2 * milliseconds)
  }

  /** Counts milliseconds of a request that waits for no time of its owner. */
  spendAtOnce(owner: string, milliseconds: number): void {
    this.#count(owner, milliseconds, 0)
  }

  #count(owner: string, all: number, waiting: number): void {
    const at = this.#clock.monotonic()
    let paid = this.#paidAt.get(owner)
    if (paid === undefined) {
      paid = { all: 0, waiting: 0 }
      if (this.#paidAt.size >= 1000) this.#dropPaid(at)
      this.#paidAt.set(owner, paid)
    }
    const most = at + ownerBurstMs / ownerTimeShare + owedMsMax
    paid.all = Math.min(Math.max(paid.all, at) + all / ownerTimeShare, most)
    paid.waiting = Math.min(Math.max(paid.waiting, at) + waiting / ownerTimeShare, most)
  }

  #dropPaid(at: number): void {
    for (const [owner, { all, waiting }] of this.#paidAt) if (all <= at && waiting <= at) this.#paidAt.delete(owner)
  }

  /** Resolves when the owner's next bytes may be handled, and counts them at once: others wait for the same moment. */
  async pause(owner: string, milliseconds = 0): Promise<void> {
    // Again, as others of the owner may have been first.
    for (let left = this.wait(owner); left > 0; left = this.wait(owner)) await Bun.sleep(left)
    if (milliseconds > 0) this.spend(owner, milliseconds)
  }
}
