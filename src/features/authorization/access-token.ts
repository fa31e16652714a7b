/** Makes access tokens of grants, and ends grants. */

import { randomBytes } from 'node:crypto'
import { type Caller, canAccessNamespace, liveCaller } from '../../auth/authenticate.ts'
import { endGrant, type Grant, type GrantEnd, refreshTokenOf } from '../../auth/grants.ts'
import { secondsOf } from '../../clock.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { accessTokenSeconds } from '../../limits.ts'
import type { ServiceTokenClaims } from '../../model/token.ts'
import { findConnection } from '../../storage/connections.ts'
import type { OAuthDeps } from './oauth-deps.ts'
import { OAuthError } from './oauth-error.ts'
import { resourceOf, scope } from './oauth-metadata.ts'
import { policyOf } from './policy.ts'

type Allowed = Pick<Grant, 'keyId' | 'namespace' | 'connectionId' | 'connectionMade'>

/**
 * The user whose key allowed it. Throws `invalid_grant` if the key was revoked, or may no longer access the namespace.
 */
export async function callerOf({ directory, store }: OAuthDeps, allowed: Allowed): Promise<Caller> {
  const { keyId, namespace, connectionId, connectionMade } = allowed
  const live = await liveCaller(directory, keyId)
  const found = await live?.directory.namespace(namespace)
  if (live === undefined || found === undefined || !(await canAccessNamespace(live.caller, found, live.directory))) {
    throw new OAuthError('invalid_grant', 'the user no longer has access')
  }
  const connection = await findConnection(store, namespace, connectionId)
  if (connection?.connection.createdAt !== connectionMade) {
    throw new OAuthError('invalid_grant', 'the connection that was allowed is gone')
  }
  return live.caller
}

/**
 * The response with a new access token, and the current refresh token if the grant has one. Send it only once the grant
 * is in the store.
 */
export async function accessResponse(deps: OAuthDeps, grant: Grant, caller: Caller): Promise<Response> {
  const { authenticator, signInKey } = deps
  const iat = secondsOf(deps.clock)
  const exp = Math.min(iat + accessTokenSeconds, grant.expires)
  const claims: ServiceTokenClaims = {
    iss: deps.issuer,
    aud: resourceOf(deps, grant.namespace, grant.connectionId),
    sub: grant.userId,
    key: grant.keyId,
    jti: `tok_${randomBytes(16).toString('base64url')}`,
    // Revoking the grant's id revokes the token.
    par: [grant.grantId],
    iat,
    exp,
    policy: policyOf(grant),
  }
  const token = await deps.sign(claims, caller)
  authenticator.minted(token)
  const body = {
    access_token: token,
    token_type: 'Bearer',
    expires_in: exp - iat,
    scope,
    ...(grant.refreshes !== undefined && { refresh_token: refreshTokenOf(signInKey, grant) }),
  }
  return jsonResponse(JSON.stringify(body), noStoreJson)
}

/** Ends a grant, and audits it. False if there is none. */
export async function endAndAudit(
  { store, audit, clock }: OAuthDeps,
  grantId: string,
  reason: GrantEnd,
): Promise<boolean> {
  if (!(await endGrant(store, grantId, secondsOf(clock)))) return false
  await audit.record('grant.ended', { grantId, reason })
  return true
}
