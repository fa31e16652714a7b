/**
 * Runs expensive work in slices, and yields the event loop to other requests in between. Each turn runs one slice,
 * round-robin among API keys and, within a key, among its families of tokens. So neither an expensive request, nor many
 * of them, nor many tokens, block the others.
 *
 * Work is a generator that yields the cost of its next step before taking it. A slice ends once its cost reaches
 * `sliceCost`, about three milliseconds.
 */

import { rateLimited } from '../errors.ts'
import { sliceCost, slicedWorkMax } from '../limits.ts'
import type { Holder } from './shares.ts'

export type Work<T> = Generator<number, T>

export interface Turns {
  /**
   * Resolves with the result. Work that fits one slice runs at once. Rejects with what the work throws, and with
   * `rate_limited` if `slicedWorkMax` requests of the caller's family are waiting already.
   */
  run<T>(caller: Holder, work: Work<T>): Promise<T>
}

interface Job {
  /** Runs one slice. True if the work has ended. */
  slice(): boolean
}

export function createTurns(): Turns {
  /** Jobs by API key and family. Maps keep insertion order: the first key and family have the next turn. */
  const waiting = new Map<string, Map<string, Job[]>>()

  /** Runs one slice, and moves its family and key to the end. */
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

/** Each call runs steps until the next one would reach `sliceCost`. A step that costs more than that runs alone. */
function slicesOf<T>(work: Work<T>): () => IteratorResult<number, T> {
  /** The cost of the next step, which was yielded but not taken yet. */
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
