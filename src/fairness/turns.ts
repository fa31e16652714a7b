/**
 * Runs expensive work in slices, and yields the event loop to other requests in between. Each turn runs one slice, in
 * rounds among owners (`rounds.ts`). So neither an expensive request, nor many of them, nor many tokens, block others.
 *
 * Work is a generator that yields the cost of its next step before taking it. A slice ends once its cost reaches
 * `sliceCost`, about three milliseconds. A single step may take longer: compiling a schema, parsing a large answer. It
 * counts for its owner's part of the time (`pace.ts`), so that such steps do not follow one another.
 */

import { type Clock, systemClock } from '../clock.ts'
import { rateLimited } from '../errors.ts'
import { eventLoopSliceMs, sliceCost } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'
import { createPaces, type Paces } from './pace.ts'
import { createRounds } from './rounds.ts'

export type Work<T> = Generator<number, T>

export interface Turns {
  /**
   * Resolves with the result. Work that fits one slice runs at once, unless its owner has work waiting or, for more
   * than a tenth of a slice, ran a slice since the last turn of the event loop: forty requests of half a millisecond
   * would follow one another. Rejects with what the work throws, and with `rate_limited` if too much work of the holder
   * waits already.
   */
  run<T>(holder: Holder, work: Work<T>): Promise<T>
  /** The same, without a promise for what runs at once. */
  start<T>(holder: Holder, work: Work<T>): Promise<T> | T
}

interface Job {
  /** Runs one slice. True if the work has ended. */
  slice(): boolean
}

export function createTurns(time: Paces = createPaces(), clock: Clock = systemClock): Turns {
  const waiting = createRounds<Job>()
  let isScheduled = false
  const mayGo = (owner: string) => time.ofOwner(owner).wait() === 0
  /** Milliseconds of work that owners ran at once since the last turn of the event loop. */
  const atOnce = new Map<string, number>()

  function schedule(isLater = false): void {
    if (isScheduled) return
    isScheduled = true
    if (isLater) setTimeout(turn, eventLoopSliceMs)
    else setImmediate(turn)
  }

  function turn(): void {
    isScheduled = false
    const next = waiting.next(mayGo)
    if (next !== undefined) {
      const from = clock.monotonic()
      if (!next.job.slice()) waiting.putBack(next.holder, next.job)
      const took = clock.monotonic() - from
      if (took > 2 * eventLoopSliceMs) time.of(next.holder).spend(took)
    }
    if (!waiting.isEmpty()) schedule(next === undefined)
  }

  const turns: Turns = {
    run: async (holder, work) => turns.start(holder, work),
    start<T>(holder: Holder, work: Work<T>): Promise<T> | T {
      const first = work.next()
      if (first.done) return first.value
      const slice = slicesOf(work, first.value)
      const owner = ownerOf(holder)
      const before = atOnce.get(owner) ?? 0
      // Small work does not wait for that: thousands of requests may bring it at once, and would not fit the line.
      const mayRun = first.value < sliceCost / 10 || before < eventLoopSliceMs
      if (first.value < sliceCost && mayRun && !waiting.isWaiting(holder)) {
        if (atOnce.size === 0) setImmediate(() => atOnce.clear())
        const from = clock.monotonic()
        try {
          const step = slice()
          if (step.done) return step.value
        } finally {
          atOnce.set(owner, before + clock.monotonic() - from)
        }
      }
      const { job, promise } = jobOf(slice)
      if (!waiting.add(holder, job)) throw rateLimited('This caller has too many expensive requests in progress', 1)
      schedule()
      return promise
    },
  }
  return turns
}

/** `promise`: of the result. */
function jobOf<T>(slice: () => IteratorResult<number, T>): { readonly job: Job; readonly promise: Promise<T> } {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const job: Job = {
    slice() {
      try {
        const step = slice()
        if (step.done) resolve(step.value)
        return step.done === true
      } catch (error) {
        reject(error)
        return true
      }
    },
  }
  return { job, promise }
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
