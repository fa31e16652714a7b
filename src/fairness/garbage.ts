/**
 * Gives memory back while expensive work goes on. The runtime collects garbage in time, but returns the freed memory
 * to the system only when the process is idle for a while: 450 calls of large mocks took 700 MB, of which 170 were in
 * use.
 */

import { garbageBytesMax, slicesPerGarbageCheck } from '../limits.ts'

export interface Garbage {
  /** Counts one slice of work, which took about three milliseconds. */
  addSlice(): void
}

/** `memory`: bytes of the process. `shrink`: collects and returns what it can, with a pause of 10 to 90 ms. */
export function createGarbage(memory = () => process.memoryUsage.rss(), shrink = () => Bun.shrink()): Garbage {
  let slices = 0
  /** The least since `shrink` was last called. */
  let least = Number.POSITIVE_INFINITY
  return {
    addSlice() {
      slices += 1
      if (slices % slicesPerGarbageCheck !== 0) return
      const bytes = memory()
      least = Math.min(least, bytes)
      if (bytes <= least + garbageBytesMax) return
      // It runs when the event loop is idle next, so the next check may still see the old figure.
      shrink()
      least = Number.POSITIVE_INFINITY
    },
  }
}
