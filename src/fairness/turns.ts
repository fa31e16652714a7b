/**
 * Runs expensive work in slices, and yields the event loop to other requests in between. Each turn runs one slice, in
 * rounds among owners (`rounds.ts`). So neither an expensive request, nor many of them, nor many tokens, block others.
 *
 * Work is a generator that yields the cost of its next step before taking it. A slice ends once its cost reaches
 * `sliceCost`, about three milliseconds. A single step may take longer: compiling a schema, parsing a large answer. It
 * counts for its owner's part of the time (`pace.ts`), so that such steps do not follow one another.
 */

import { rateLimited } from '../errors.ts'
import { eventLoopSliceMs, sliceCost, waitingJobsMax } from '../limits.ts'
import { nextTurn } from '../next-turn.ts'
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
  /** Each runs one slice. Returns its cost if the work has ended. */
  readonly #waiting = new Rounds<() => number | undefined>()
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
   * The result. Work that fits one slice runs at once, without a promise, unless its owner has work waiting, or ran a
   * slice since the last turn of the event loop: forty requests of half a millisecond, or the thousands of events that
   * forty streams receive, would follow one another. Throws or rejects with what the work throws, and with
   * `rate_limited` if too much work of the holder waits already; not if the first step is small, as thousands of
   * requests may bring such work together.
   */
  run<T>(holder: Holder, work: Work<T>): Promise<T> | T {
    const first = work.next()
    if (first.done) return first.value
    const slice = slicesOf(work, first.value)
    const owner = ownerOf(holder)
    const before = this.#atOnce.get(owner) ?? 0
    const mayRun = before < eventLoopSliceMs && this.#time.wait(owner) === 0
    if (first.value < sliceCost && mayRun && !this.#waiting.isWaiting(holder)) {
      if (this.#atOnce.size === 0) {
        setImmediate(() => this.#atOnce.clear())
        this.#before = { spent: this.#spent(), at: this.#clock() }
      }
      const from = this.#clock()
      try {
        const { step } = slice()
        if (step.done) return step.value
      } finally {
        const took = this.#spentSince(from)
        this.#atOnce.set(owner, before + took)
        this.#count(holder, took)
      }
    }
    return this.#later(holder, slice, first.value < sliceCost / 10 ? Number.POSITIVE_INFINITY : waitingJobsMax)
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

  #later<T>(holder: Holder, slice: () => Slice<T>, most: number): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const job = () => {
      try {
        const { step, cost } = slice()
        if (!step.done) return
        resolve(step.value)
        return cost
      } catch (error) {
        reject(error)
        return sliceCost
      }
    }
    if (!this.#waiting.add(holder, job, most))
      throw rateLimited('This caller has too many expensive requests in progress', 1)
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

  /** Runs one slice, or so many small pieces of work that they fit one together. */
  #turn(): void {
    this.#isScheduled = false
    const began = this.#spent()
    let [spent, cost] = [began, 0]
    while (cost < sliceCost && spent - began < eventLoopSliceMs) {
      const next = this.#waiting.next((owner) => this.#time.wait(owner) === 0)
      if (next === undefined) break
      const ended = next.job()
      if (ended === undefined) this.#waiting.add(next.holder, next.job, Number.POSITIVE_INFINITY)
      cost += ended ?? sliceCost
      const now = this.#spent()
      this.#count(next.holder, now - spent)
      spent = now
    }
    if (!this.#waiting.isEmpty) this.#schedule(cost === 0)
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
    await nextTurn()
    const { step } = slice()
    if (step.done) return step.value
  }
}

/** The step at which a slice ended, and the cost of those before it. */
interface Slice<T> {
  readonly step: IteratorResult<number, T>
  readonly cost: number
}

/**
 * Each call runs steps until the next one would reach `sliceCost`. A step that costs more than that runs alone.
 * `pending`: the cost of the next step, which was yielded but not taken yet.
 */
function slicesOf<T>(work: Work<T>, pending: number): () => Slice<T> {
  return () => {
    for (let cost = pending; ; cost += pending) {
      const step = work.next()
      if (step.done) return { step, cost }
      pending = step.value
      if (cost + pending >= sliceCost) return { step, cost }
    }
  }
}
