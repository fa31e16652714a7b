/** What the handlers of the registry have in common. */

import type { Authorizer, RequestContext } from '../../auth/authorize.ts'
import type { WriteAuthenticationDeps } from '../../auth/write-authentication.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { privateJson } from '../../http/respond.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { bodyProblemText, type Validator } from '../../schema/check.ts'
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
    throw new PlatformError('forbidden', 'Organizations are managed with an API key of a person, not with a token')
  if (caller.organizationId !== undefined)
    throw new PlatformError('forbidden', 'Organizations are managed with an API key of a person, not with their own')
}

/** The body of a request that needs none: no body and `null` are `{}`. Throws `invalid_request`. */
export async function readOptionalBody<T>(request: Request, shape: Validator<T>): Promise<T> {
  const body = (await readJsonBody(request)) ?? {}
  if (shape.isValid(body)) return body
  const [problem = { place: '', message: 'cannot be read' }] = shape.problems(body, 1)
  throw invalidRequest(bodyProblemText(problem))
}

export function doneResponse(): Response {
  return new Response('{"success":true}', { headers: privateJson })
}
