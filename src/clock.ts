/** The two clocks of a process. */

export interface Clock {
  /** Milliseconds since 1970, in UTC, for what other processes read. Somebody may set it, back too. */
  now(): number
  /** Milliseconds that only rise, for durations; since when, nobody says. */
  monotonic(): number
}

export const systemClock: Clock = { now: Date.now, monotonic: () => performance.now() }

/** Seconds since 1970, whole, as tokens write the time. */
export function secondsOf(clock: Clock): number {
  return Math.floor(clock.now() / 1000)
}

/** The time as records and logs write it: RFC 3339 in UTC, with milliseconds. */
export function timestampOf(clock: Clock): string {
  return new Date(clock.now()).toISOString()
}

interface Made {
  /** As `timestampOf` writes it: its order is that of its characters. */
  readonly createdAt: string
}

/** For `sort`, in place of `localeCompare`, which would hold others up where there are very many. */
export function olderFirst(a: Made, b: Made): number {
  if (a.createdAt === b.createdAt) return 0
  return a.createdAt < b.createdAt ? -1 : 1
}
