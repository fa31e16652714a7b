/**
 * One coarse timer for the timeouts of all calls. Every call has timeouts, hardly any of them fires, and a timer of the
 * runtime costs two microseconds. So timeouts may fire up to `deadlineTickMs` late.
 */

/**
 * Interval at which deadlines of calls are checked, and after which a call checks that its client is still connected.
 * Within it: nothing counts as late.
 */
export const deadlineTickMs = 50

export interface DeadlineClock {
  /** Calls `look` with `performance.now()` at every tick, until the watch is ended. */
  watch(look: (now: number) => void): Watch
}

export interface Watch {
  end(): void
}

/** Ticks only while something is watched, and does not keep the process alive. */
export function createDeadlineClock(): DeadlineClock {
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
