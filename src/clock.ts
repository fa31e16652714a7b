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
