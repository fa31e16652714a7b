/** A clock that a test moves. */

import type { Clock } from '../../src/clock.ts'

/** Both clocks of a process, as `milliseconds` says. */
export function clockOf(milliseconds: () => number): Clock {
  return { now: milliseconds, monotonic: milliseconds }
}
