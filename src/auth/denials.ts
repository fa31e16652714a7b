/** Denials by a token's policy, as lines of the audit log: who was refused what, and by which constraint. */

import { constraintOf } from '../errors.ts'
import { auditNameCharsMax } from '../limits.ts'
import { namedBy } from '../model/mcp.ts'
import type { Audit, AuditFields } from '../ops/audit-log.ts'
import type { Access, Decision } from '../policy/decide.ts'
import type { Caller } from './authenticate.ts'

export interface Denials {
  /** A decision that was no. What the caller is told may be less. */
  policy(request: Request, caller: Caller, access: Access, decision: Extract<Decision, { allowed: false }>): void
  /** A token that was not minted. */
  mint(request: Request, caller: Caller, reason: string): void
  /** A connection that was not written for a reason that is not the policy's. */
  write(request: Request, caller: Caller, namespace: string | undefined, reason: string): void
}

export function createDenials(audit: Audit, requestId: (request: Request) => string): Denials {
  const about = (request: Request, { token }: Caller) => ({ requestId: requestId(request), jti: token?.jti })
  return {
    policy(request, caller, access, refusal) {
      const { namespace, resource, operation, metadata } = access
      const connectionId = typeof metadata === 'object' ? metadata.connectionId : undefined
      const constraint = constraintOf(refusal)
      const what = { namespace, connectionId, resource, operation, ...describeCall(access.rpc), constraint }
      audit.recordBestEffort('access.refused', caller, { ...about(request, caller), ...what })
    },
    write: (request, caller, namespace, reason) =>
      audit.recordBestEffort('write.refused', caller, { ...about(request, caller), namespace, reason }),
    mint: (request, caller, reason) =>
      audit.recordBestEffort('token.refused', caller, { ...about(request, caller), reason }),
  }
}

/**
 * The method of an MCP request, and the tool, prompt or resource that it names. Its arguments are nobody's business.
 */
function describeCall(rpc: unknown): AuditFields {
  const { method, params } = (rpc ?? {}) as { method?: unknown; params?: unknown }
  if (typeof method !== 'string') return {}
  const name = namedBy(method, params)
  return { method: shorten(method), name: typeof name === 'string' ? shorten(name) : undefined }
}

function shorten(text: string): string {
  return text.length > auditNameCharsMax ? `${text.slice(0, auditNameCharsMax - 1)}…` : text
}
