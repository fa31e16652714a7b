/** What the handlers of the registry have in common. */

import type { Authorizer, RequestContext } from '../../auth/authorize.ts'
import type { WriteAuthenticationDeps } from '../../auth/write-authentication.ts'
import { PlatformError } from '../../errors.ts'
import { privateJson } from '../../http/respond.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'

export interface RegistryDeps extends WriteAuthenticationDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly audit: Audit
  /** The key that API keys are hashed with. */
  readonly pepper: Buffer
  /** Namespaces that a user owns and may not make another; Infinity for no limit. */
  readonly namespacesPerUser: number
  readonly baseUrl: string
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The caller of a write, for the audit log. */
export function whoWrote({ caller: { userId, keyId, token } }: RequestContext) {
  return { userId, keyId, jti: token?.jti }
}

/** Throws 403 for a token, and for an organization's key: neither may make what outlives it (door contract, 1.3). */
export function requireApiKey({ caller }: RequestContext): void {
  if (caller.token !== undefined)
    throw new PlatformError('forbidden', 'Organizations are managed with the API key of a user, not with a token')
  if (caller.organizationId !== undefined)
    throw new PlatformError('forbidden', 'Organizations are managed with the API key of a user, not of an organization')
}

export function doneResponse(): Response {
  return new Response('{"success":true}', { headers: privateJson })
}
