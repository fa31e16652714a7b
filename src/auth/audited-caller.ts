/** The caller of a request, as the audit log names it. */

import type { Caller } from './authenticate.ts'

export function auditedCaller({ userId, keyId, token }: Caller) {
  return { userId, keyId, jti: token?.jti }
}
