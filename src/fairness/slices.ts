/** The event loop for a request that waits in between, as for the store: a slice in each turn of its owner. */

import { eventLoopSliceMs, sliceCost } from '../limits.ts'
import type { Holder } from './owner.ts'
import type { Turns, Work } from './turns.ts'

export class Slices {
  readonly #turns: Pick<Turns, 'run'>
  readonly #holder: Holder
  /** By `performance.now()`. */
  #started = performance.now()
  #next: Promise<void> | undefined

  constructor(turns: Pick<Turns, 'run'>, holder: Holder) {
    this.#turns = turns
    this.#holder = holder
  }

  /** Whether this slice has used the event loop for `eventLoopSliceMs`. */
  get isOver(): boolean {
    return performance.now() - this.#started >= eventLoopSliceMs
  }

  /**
   * Resolves when the next slice begins; rejects as `Turns.run`. Parts of the request that wait together have the same
   * slice, one after another, and each looks whether the one before it used it up: `while (isOver) await next()`.
   */
  next(): Promise<void> {
    this.#next ??= this.#turn()
    return this.#next
  }

  async #turn(): Promise<void> {
    try {
      await this.#turns.run(this.#holder, wholeTurn())
      this.#started = performance.now()
    } finally {
      this.#next = undefined
    }
  }
}

/** Work that is done when its turn comes. It costs a whole slice, so it is never done at once. */
function* wholeTurn(): Work<void> {
  yield sliceCost
}
