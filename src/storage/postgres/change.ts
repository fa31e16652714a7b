/** Something that changes now and then, and can be waited for. */

import type { Clock } from '../../clock.ts'

export interface Change {
  /** Wakes all who wait. */
  notify(): void
  /** Resolves with true at the next change, and with false at `until`, if that comes first or is over. */
  next(until: number): Promise<boolean>
}

export function createChange(clock: Clock): Change {
  let change = Promise.withResolvers<true>()
  return {
    notify() {
      change.resolve(true)
      change = Promise.withResolvers()
    },
    async next(until) {
      if (clock.monotonic() >= until) return false
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(() => resolve(false), until - clock.monotonic())
      })
      const hasChanged = await Promise.race([change.promise, late])
      clearTimeout(timer)
      return hasChanged
    },
  }
}
