/** Refusals by a token's policy, as lines of the audit log: who was refused what, and by which constraint. */

import type { Caller } from '../auth/authenticate.ts'
import { constraintOf } from '../errors.ts'
import type { Access, Decision } from '../policy/decide.ts'
import type { Audit } from './audit-log.ts'

export interface Refusals {
  /** A decision that was no. What the caller is told may be less. */
  policy(request: Request, caller: Caller, access: Access, decision: Extract<Decision, { allowed: false }>): void
  /** A token that was not minted. */
  mint(request: Request, caller: Caller, reason: string): void
  /** A connection that was not written for a reason that is not the policy's. */
  write(request: Request, caller: Caller, namespace: string | undefined, reason: string): void
}

export function createRefusals(audit: Audit, requestId: (request: Request) => string): Refusals {
  const who = (request: Request, caller: Caller) => ({
    requestId: requestId(request),
    userId: caller.userId,
    keyId: caller.keyId,
    jti: caller.token?.jti,
  })
  return {
    policy(request, caller, { namespace, resource, operation }, refusal) {
      const constraint = constraintOf(refusal)
      audit.note('access.refused', { ...who(request, caller), namespace, resource, operation, constraint })
    },
    write: (request, caller, namespace, reason) =>
      audit.note('write.refused', { ...who(request, caller), namespace, reason }),
    mint: (request, caller, reason) => audit.note('token.refused', { ...who(request, caller), reason }),
  }
}
