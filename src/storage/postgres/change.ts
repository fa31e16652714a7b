/** Something that changes now and then, and can be waited for. */

export interface Change {
  /** Wakes all who wait. */
  notify(): void
  /** Resolves with true at the next change, and with false at `until`, if that comes first or is over. */
  next(until: number): Promise<boolean>
}

/** `now`: a monotonic clock in milliseconds. */
export function createChange(now: () => number): Change {
  let change = Promise.withResolvers<true>()
  return {
    notify() {
      change.resolve(true)
      change = Promise.withResolvers()
    },
    async next(until) {
      if (now() >= until) return false
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<false>((resolve) => {
        timer = setTimeout(() => resolve(false), until - now())
      })
      const hasChanged = await Promise.race([change.promise, late])
      clearTimeout(timer)
      return hasChanged
    },
  }
}
