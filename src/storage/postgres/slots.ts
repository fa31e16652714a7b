/** Places for work that may be under way at once; a caller that finds none waits in line. */

import type { Clock } from '../../clock.ts'
import { within } from '../../within.ts'

/** `among`: each place takes one of these, too. */
export function createSlots(max: number, clock: Clock, among?: Slots): Slots {
  const own = createOwnSlots(max, clock)
  if (among === undefined) return own
  return {
    async take(until) {
      if (!(await own.take(until))) return false
      const hasBoth = await among.take(until)
      if (!hasBoth) own.giveBack()
      return hasBoth
    },
    giveBack() {
      among.giveBack()
      own.giveBack()
    },
  }
}

type Slots = ReturnType<typeof createOwnSlots>

function createOwnSlots(max: number, clock: Clock) {
  let free = max
  const waiting = new Set<() => void>()
  return {
    /** Resolves with true once there is a place, which must be given back; with false if there is none by `until`. */
    async take(until: number): Promise<boolean> {
      if (free > 0) {
        free -= 1
        return true
      }
      const turn = Promise.withResolvers<boolean>()
      const called = () => turn.resolve(true)
      waiting.add(called)
      // Called at this very moment: then the place is ours.
      return within(until - clock.monotonic(), turn.promise, () => !waiting.delete(called))
    },
    giveBack(): void {
      const [next] = waiting
      if (next === undefined) free += 1
      else {
        waiting.delete(next)
        next()
      }
    },
  }
}
