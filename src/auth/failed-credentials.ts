/**
 * Credentials that are refused: they are counted, so that nobody tries many, and the log says why; the response never
 * does. A flood of them does not flood the log, and no line of the log contains a credential.
 */

import type { Clock } from '../clock.ts'
import { type PlatformError, rateLimited, unauthorized } from '../errors.ts'
import type { RateLimit } from '../fairness/rate-limit.ts'
import type { ClientSockets } from '../http/client-sockets.ts'
import type { Log, LogFields } from '../ops/log.ts'

/** Ours: interval at which refused credentials are logged, for each reason. Within it: refused credentials are counted, and the next line has their number. */
export const refusalLogIntervalMs = 10_000

const words = {
  missing: 'there is no Authorization header',
  not_bearer: 'the Authorization header is not "Bearer" followed by one key or token',
  unknown: 'the credential is neither an API key nor a token of this postern',
  issuer: 'the token was issued under another base URL (--base-url)',
  audience: 'the token is valid only at another URL',
  not_yet: 'the token was issued in the future: one of two clocks is wrong',
  expired: 'the token has expired',
  revoked: 'the key, the token, or a token that it was minted with is revoked or deleted',
  membership: 'the user of the token no longer manages its organization',
  policy: 'a constraint of the token cannot be read by this version',
  limit: 'this address sent too many invalid credentials (--failure-rate)',
} as const

export type RefusalReason = keyof typeof words

/** A line's `unwritten` is the number of refusals suppressed before it. */
export function createRefusedLog(log: Pick<Log, 'warn'>, clock: Clock) {
  const written = new Map<RefusalReason, { at: number; unwritten: number }>()
  return (reason: RefusalReason, details: LogFields): void => {
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

export interface Refused {
  readonly refused: RefusalReason
  readonly details?: LogFields
}

interface RefusingParts {
  readonly log: Pick<Log, 'warn'>
  readonly clock: Clock
  /** Limits refused credentials, by address. */
  readonly failures: RateLimit
  readonly sockets: Pick<ClientSockets, 'addressOf'>
  /** The id by which the client knows its request. */
  readonly requestId: (request: Request) => string
  readonly observer: { credentialRefused(reason: RefusalReason): void } | undefined
}

export type Refuse = ReturnType<typeof createRefuse>

/** Makes a function that logs why, and counts a failure if `isCounted`. Its error for the client says less. */
export function createRefuse({ log, clock, failures, sockets, requestId, observer }: RefusingParts) {
  const note = createRefusedLog(log, clock)
  return (request: Request, { refused, details }: Refused, isCounted = true): PlatformError => {
    const address = sockets.addressOf(request)
    const wait = isCounted ? failures.take(address) : 0
    const reason = wait > 0 ? 'limit' : refused
    note(reason, { address, requestId: requestId(request), ...details })
    observer?.credentialRefused(reason)
    return wait > 0 ? rateLimited('Too many invalid credentials from this address', wait) : unauthorized()
  }
}
