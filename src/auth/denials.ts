/** Writes denials to the audit log: the caller, the access that was denied, and the constraint or reason. */

import { constraintOf } from '../errors.ts'
import { auditNameCharsMax } from '../limits.ts'
import { namedBy } from '../model/mcp.ts'
import type { Audit, AuditFields } from '../ops/audit-log.ts'
import type { Access, Decision } from '../policy/decide.ts'
import { shorten } from '../schema/cut-text.ts'
import type { Caller } from './authenticate.ts'

export type Denials = ReturnType<typeof createDenials>

/** Best effort: a denial is not delayed, nor turned into another error, if the audit log cannot be written. */
export function createDenials(audit: Audit, requestId: (request: Request) => string) {
  const about = (request: Request, { token }: Caller) => ({ requestId: requestId(request), jti: token?.jti })
  return {
    /** An access that the policy denied. The caller's error may contain less. */
    recordPolicyDenial(request: Request, caller: Caller, access: Access, refusal: Decision & { allowed: false }): void {
      const { namespace, resource, operation, metadata } = access
      const connectionId = typeof metadata === 'object' ? metadata.connectionId : undefined
      const constraint = constraintOf(refusal)
      const what = { namespace, connectionId, resource, operation, ...describeCall(access.rpc), constraint }
      audit.recordBestEffort('access.refused', caller, { ...about(request, caller), ...what })
    },
    /** A write that was refused for a reason other than the policy: a rate limit, or a full namespace. */
    recordWriteRefusal: (request: Request, caller: Caller, namespace: string | undefined, reason: string) =>
      audit.recordBestEffort('write.refused', caller, { ...about(request, caller), namespace, reason }),
    recordMintRefusal: (request: Request, caller: Caller, reason: string) =>
      audit.recordBestEffort('token.refused', caller, { ...about(request, caller), reason }),
  }
}

/** The method of an MCP request, and the tool, prompt or resource that it names; never its arguments. */
function describeCall(rpc: unknown): AuditFields {
  const { method, params } = (rpc ?? {}) as { method?: unknown; params?: unknown }
  if (typeof method !== 'string') return {}
  const name = namedBy(method, params)
  return { method: inShort(method), name: typeof name === 'string' ? inShort(name) : undefined }
}

const inShort = (text: string) => shorten(text, auditNameCharsMax)
