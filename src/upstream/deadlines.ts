/** Deadlines by a coarse clock. Every call has some and hardly any is met, and a timer of the runtime's costs two microseconds each. */

import { deadlineTickMs } from '../limits.ts'

export interface Deadlines {
  /** Calls `late` once this many milliseconds have passed, or a tick later. Returns what takes it back. */
  after(milliseconds: number, late: () => void): () => void
}

export function createDeadlines(): Deadlines {
  const waiting = new Set<{ readonly at: number; readonly late: () => void }>()
  let isTicking = false

  function tick(): void {
    const now = performance.now()
    for (const one of waiting) {
      if (one.at > now || !waiting.delete(one)) continue
      one.late()
    }
    isTicking = waiting.size > 0
    if (isTicking) setTimeout(tick, deadlineTickMs).unref()
  }

  return {
    after(milliseconds, late) {
      const one = { at: performance.now() + milliseconds, late }
      waiting.add(one)
      if (!isTicking) {
        isTicking = true
        setTimeout(tick, deadlineTickMs).unref()
      }
      return () => void waiting.delete(one)
    },
  }
}
