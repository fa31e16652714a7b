/**
 * A coarse clock for what is under way. Every call has its deadlines and hardly any is met, and a timer of the
 * runtime's costs two microseconds each.
 */

import { deadlineTickMs } from '../limits.ts'

export interface Clock {
  /** Calls `look` at every tick, with the milliseconds of `performance.now()`, until it is taken back. */
  watch(look: (now: number) => void): Watch
}

export interface Watch {
  end(): void
}

export function createClock(): Clock {
  const watched = new Set<(now: number) => void>()
  let isTicking = false

  function tick(): void {
    const now = performance.now()
    for (const look of watched) look(now)
    isTicking = watched.size > 0
    if (isTicking) setTimeout(tick, deadlineTickMs).unref()
  }

  return {
    watch(look) {
      watched.add(look)
      if (!isTicking) {
        isTicking = true
        setTimeout(tick, deadlineTickMs).unref()
      }
      return { end: () => void watched.delete(look) }
    },
  }
}
