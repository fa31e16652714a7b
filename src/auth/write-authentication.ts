/** Authenticates requests that write, of which each API key has a rate. */

import { rateLimited } from '../errors.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { Authorizer, RequestContext } from './authorize.ts'
import type { Denials } from './denials.ts'

export interface WriteAuthenticationDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  /** Limits writes and deletions per API key. */
  readonly writes: RateLimit
}

/** Throws 401, and 429 if the caller's API key exceeds its write rate. */
export type WriteAuthentication = (request: Request) => Promise<RequestContext>

export function writeAuthentication({ authorizer, denials, writes }: WriteAuthenticationDeps): WriteAuthentication {
  return async (request) => {
    const context = await authorizer.authenticate(request)
    const wait = writes.take(context.caller.keyId)
    if (wait === 0) return context
    denials.recordWriteRefusal(request, context.caller, undefined, 'rate_limited')
    throw rateLimited('This API key is writing too fast', wait)
  }
}
