/**
 * Runs expensive work in slices, and yields the event loop to other requests in between. Each turn runs one slice, in
 * rounds among owners (`rounds.ts`). So neither an expensive request, nor many of them, nor many tokens, block others.
 *
 * Work is a generator that yields the cost of its next step before taking it. A slice ends once its cost reaches
 * `sliceCost`, about three milliseconds. A single step may take longer: compiling a schema, parsing a large answer. It
 * counts for its owner's part of the time (`pace.ts`), so that such steps do not follow one another.
 */

import { rateLimited } from '../errors.ts'
import { eventLoopSliceMs, sliceCost } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'
import { Paces } from './pace.ts'
import { Rounds } from './rounds.ts'

export type Work<T> = Generator<number, T>

/** Work that took no longer by the clock is not measured any closer. */
const surelyShortMs = 0.2

export class Turns {
  readonly #time: Paces
  readonly #spent: () => number
  readonly #clock: () => number
  /** Each runs one slice; true if the work has ended. */
  readonly #waiting = new Rounds<() => boolean>()
  #isScheduled = false
  /** Milliseconds of work that owners ran at once since the last turn of the event loop. */
  readonly #atOnce = new Map<string, number>()
  /** `spent` and the clock at one moment of this turn of the event loop. */
  #before = { spent: 0, at: 0 }

  /** `spent`: milliseconds that this thread has used so far. `clock`: those that have passed. */
  constructor(time = new Paces(), spent: () => number = processorMs, clock: () => number = () => performance.now()) {
    this.#time = time
    this.#spent = spent
    this.#clock = clock
  }

  /**
   * The result. Work that fits one slice runs at once, without a promise, unless its owner has work waiting or, for
   * more than a tenth of a slice, ran a slice since the last turn of the event loop: forty requests of half a
   * millisecond would follow one another. Throws or rejects with what the work throws, and with `rate_limited` if too
   * much work of the holder waits already.
   */
  run<T>(holder: Holder, work: Work<T>): Promise<T> | T {
    const first = work.next()
    if (first.done) return first.value
    const slice = slicesOf(work, first.value)
    const owner = ownerOf(holder)
    const before = this.#atOnce.get(owner) ?? 0
    // Small work does not wait for that: thousands of requests may bring it at once, and would not fit the line.
    const mayRun = (first.value < sliceCost / 10 || before < eventLoopSliceMs) && this.#time.wait(owner) === 0
    if (first.value < sliceCost && mayRun && !this.#waiting.isWaiting(holder)) {
      if (this.#atOnce.size === 0) {
        setImmediate(() => this.#atOnce.clear())
        this.#before = { spent: this.#spent(), at: this.#clock() }
      }
      const from = this.#clock()
      try {
        const step = slice()
        if (step.done) return step.value
      } finally {
        const took = this.#spentSince(from)
        this.#atOnce.set(owner, before + took)
        this.#count(holder, took)
      }
    }
    return this.#later(holder, slice)
  }

  /**
   * Milliseconds of work that began at this time, in this turn of the event loop. The thread's own time takes a
   * microsecond to read, so it is read only after work that seems long: another program may have had the processor. Up
   * to the work the thread has spent no more than had passed; the rest is the work's, and in doubt too little of it.
   */
  #spentSince(from: number): number {
    const at = this.#clock()
    if (at - from < surelyShortMs) return at - from
    const { spent, at: began } = this.#before
    this.#before = { spent: this.#spent(), at }
    return Math.min(at - from, Math.max(0, this.#before.spent - spent - (from - began)))
  }

  #later<T>(holder: Holder, slice: () => IteratorResult<number, T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const job = () => {
      try {
        const step = slice()
        if (step.done) resolve(step.value)
        return step.done === true
      } catch (error) {
        reject(error)
        return true
      }
    }
    if (!this.#waiting.add(holder, job)) throw rateLimited('This caller has too many expensive requests in progress', 1)
    this.#schedule()
    return promise
  }

  #schedule(isLater = false): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const turn = () => this.#turn()
    if (isLater) setTimeout(turn, eventLoopSliceMs)
    else setImmediate(turn)
  }

  #turn(): void {
    this.#isScheduled = false
    const next = this.#waiting.next((owner) => this.#time.wait(owner) === 0)
    if (next !== undefined) {
      const from = this.#spent()
      if (!next.job()) this.#waiting.add(next.holder, next.job, Number.POSITIVE_INFINITY)
      this.#count(next.holder, this.#spent() - from)
    }
    if (!this.#waiting.isEmpty) this.#schedule(next === undefined)
  }

  /** Counts a step that took longer than it may for its owner, who then waits. */
  #count(holder: Holder, took: number): void {
    if (took > 2 * eventLoopSliceMs) this.#time.spend(ownerOf(holder), took)
  }
}

/** The thread's own time: while other programs have the processor, no owner's work takes longer. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/**
 * Runs work in slices of its own, one in each turn of the event loop, and waits for nobody else's: for work inside a
 * queue, whose other tasks would wait, too. The queue bounds how much of it there is.
 */
export async function inSlices<T>(work: Work<T>): Promise<T> {
  const first = work.next()
  if (first.done) return first.value
  const slice = slicesOf(work, first.value)
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve))
    const step = slice()
    if (step.done) return step.value
  }
}

/**
 * Each call runs steps until the next one would reach `sliceCost`. A step that costs more than that runs alone.
 * `pending`: the cost of the next step, which was yielded but not taken yet.
 */
function slicesOf<T>(work: Work<T>, pending: number): () => IteratorResult<number, T> {
  return () => {
    let spent = pending
    for (;;) {
      const step = work.next()
      if (step.done) return step
      pending = step.value
      spent += pending
      if (spent >= sliceCost) return step
    }
  }
}
