/**
 * Work in steps: a generator that yields the cost of each step before it does it, in the unit of `sliceCost`. The event
 * loop answers others between them (`fairness/turns.ts`).
 */

/** Values handled in one step: 3 ms before the runtime has compiled the loop, then a tenth. Past it: the next step. */
export const valuesPerStep = 2000

/** Runs all steps without a pause. */
export function drained<T>(steps: Generator<number, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
