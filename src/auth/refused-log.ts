/**
 * Logs why credentials are refused; the response never contains the reason. At most one line per reason and
 * `refusalLogIntervalMs`, so that a flood of bad credentials does not flood the log. No line contains a credential.
 */

import type { Clock } from '../clock.ts'
import type { Log, LogFields } from '../ops/log.ts'

/** Ours: interval at which refused credentials are logged, for each reason. Within it: they are counted, and the next line has the number. */
export const refusalLogIntervalMs = 10_000

const words = {
  missing: 'there is no Authorization header',
  not_bearer: 'the Authorization header is not "Bearer" followed by one key or token',
  unknown: 'it is neither an API key nor a token of this platform',
  issuer: 'the token was issued under another base URL (--base-url)',
  audience: 'the token is good at another URL only',
  not_yet: 'the token was issued in the future: one of two clocks is wrong',
  expired: 'the token has expired',
  revoked: 'the key, the token, or a token that it was minted with is revoked or deleted',
  membership: 'the user of the token no longer manages its organization',
  policy: 'a constraint of the token cannot be read by this version',
  limit: 'too many credentials from this address were not accepted (--failure-rate)',
} as const

export type RefusalReason = keyof typeof words
export type OnRefused = (reason: RefusalReason, details: LogFields) => void

/** A line's `unwritten` is the number of refusals suppressed before it. */
export function createRefusedLog(log: Pick<Log, 'warn'>, clock: Clock): OnRefused {
  const written = new Map<RefusalReason, { at: number; unwritten: number }>()
  return (reason, details) => {
    const last = written.get(reason)
    const at = clock.monotonic()
    if (last !== undefined && at - last.at < refusalLogIntervalMs) {
      last.unwritten += 1
      return
    }
    written.set(reason, { at, unwritten: 0 })
    const unwritten = last === undefined || last.unwritten === 0 ? {} : { unwritten: last.unwritten }
    log.warn('credential refused', { reason, because: words[reason], ...details, ...unwritten })
  }
}
