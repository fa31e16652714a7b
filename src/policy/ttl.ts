/** Parses a constraint's ttl, a duration or a number of seconds (spec 2.2; contract, 3.3). */

import { tokenLifetimeMaxSeconds } from '../limits.ts'

const unitSeconds = { s: 1, m: 60, h: 3600 } as const

/** Whole seconds, from 1 to 24 hours, or what is wrong. The schema must have been checked before. */
export function readTtl(ttl: string | number): { seconds: number } | { message: string } {
  const seconds =
    typeof ttl === 'number' ? ttl : Number(ttl.slice(0, -1)) * unitSeconds[ttl.slice(-1) as keyof typeof unitSeconds]
  if (seconds > tokenLifetimeMaxSeconds) return { message: 'at most 24 hours' }
  if (!Number.isInteger(seconds)) return { message: 'must be a whole number of seconds, or a duration like 30m' }
  if (seconds < 1) return { message: 'at least 1 second' }
  return { seconds }
}
