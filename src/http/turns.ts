/**
 * Work that may take long, in slices: between two of them other requests have the event loop. One slice is done a turn,
 * of one API key after the other and among its tokens of one after the other, so that neither a costly request nor
 * many of them, nor many tokens, hold up the rest.
 *
 * Work is a generator that yields what its next step costs before it takes it, in a unit of the worker's own choice;
 * `sliceCost` is about three milliseconds of it.
 */

import { rateLimited } from '../errors.ts'
import { sliceCost, slicedWorkMax } from '../limits.ts'
import type { Holder } from './shares.ts'

export type Work<T> = Generator<number, T>

export interface Turns {
  /**
   * The work's result; no other request comes between where it fits one slice. Rejects with what the work throws, and
   * with `rate_limited` where the caller has too much work under way.
   */
  run<T>(caller: Holder, work: Work<T>): Promise<T>
}

interface Job {
  /** True when it is over. */
  slice(): boolean
}

export function createTurns(): Turns {
  /** By API key, and then by family, the one whose turn it is first. */
  const waiting = new Map<string, Map<string, Job[]>>()

  function turn(): void {
    const [key] = waiting
    const [family] = key?.[1] ?? []
    if (key === undefined || family === undefined) return
    const [keyId, families] = key
    const [name, jobs] = family
    const job = jobs.shift()
    if (job?.slice() === false) jobs.push(job)
    families.delete(name)
    if (jobs.length > 0) families.set(name, jobs)
    waiting.delete(keyId)
    if (families.size > 0) waiting.set(keyId, families)
    if (waiting.size > 0) setImmediate(turn)
  }

  return {
    async run<T>({ keyId, family }: Holder, work: Work<T>): Promise<T> {
      const slice = slicesOf(work)
      const first = slice()
      if (first.done) return first.value
      const families = waiting.get(keyId) ?? new Map<string, Job[]>()
      const jobs = families.get(family) ?? []
      if (jobs.length >= slicedWorkMax) throw rateLimited('This caller has too many expensive requests in progress', 1)
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      jobs.push({
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
      })
      if (waiting.size === 0) setImmediate(turn)
      families.set(family, jobs)
      waiting.set(keyId, families)
      return promise
    },
  }
}

/** Each call takes steps until the next one would go past a slice; a step that is one by itself is taken alone. */
function slicesOf<T>(work: Work<T>): () => IteratorResult<number, T> {
  /** What the step costs that was not taken yet. */
  let pending = 0
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
