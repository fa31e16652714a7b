/** `/oauth/token`, `/oauth/revoke`: codes and refresh tokens become access tokens, or end (contract, 13.7 to 13.9). */

import { timingSafeEqual } from 'node:crypto'
import { type Caller, canAccessNamespace, liveCaller } from '../../auth/authenticate.ts'
import {
  endGrant,
  findGrant,
  type Grant,
  type GrantEnd,
  grantEntry,
  grantIdOf,
  readRefreshToken,
  refreshTokenOf,
} from '../../auth/grants.ts'
import { newTokenId } from '../../auth/token-id.ts'
import { secondsOf } from '../../clock.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { type Form, readForm } from '../../http/form.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { accessTokenSeconds } from '../../limits.ts'
import type { ServiceTokenClaims } from '../../model/token.ts'
import { findConnection } from '../../storage/connections.ts'
import { withIndex } from '../../storage/directory-records.ts'
import { keyOf } from '../../storage/keys.ts'
import { type Store, StoreError } from '../../storage/store.ts'
import { resourceMadeAt } from './asked-resource.ts'
import { findClient, requireKnownClient, usesOf } from './clients.ts'
import type { CodeRecord } from './consent.ts'
import type { Client, OAuthDeps } from './oauth-deps.ts'
import { OAuthError } from './oauth-error.ts'
import { type Endpoints, type Resource, resourceOf, scope } from './oauth-metadata.ts'
import { policyOf } from './policy.ts'

export async function exchangeToken(deps: OAuthDeps, request: Request): Promise<Response> {
  const form = await readForm(request) // 400
  const grantType = required(form, 'grant_type')
  if (grantType !== 'authorization_code' && grantType !== 'refresh_token') {
    throw new OAuthError('unsupported_grant_type', 'grant_type: must be authorization_code or refresh_token')
  }
  const clientId = required(form, 'client_id')
  await requireKnownClient(deps, clientId) // 401
  return grantType === 'authorization_code'
    ? redeemCode(deps, request, form, clientId)
    : refresh(deps, request, form, clientId)
}

/** Always 200: a token that is not valid any more is what the client wants (RFC 7009, 2.2). */
export async function revokeGrant(deps: OAuthDeps, request: Request): Promise<Response> {
  const form = await readForm(request) // 400
  const token = required(form, 'token')
  const grantId = readRefreshToken(deps.signInKey, token)?.grantId ?? (await grantOfAccessToken(deps, token))
  if (grantId !== undefined) await endAndAudit(deps, request, grantId, 'revoked by client')
  return new Response(null, { status: 200, headers: noStoreJson })
}

/** A code becomes a grant, once. A code that comes again was stolen, or its client is broken: its grant ends. */
async function redeemCode(deps: OAuthDeps, request: Request, form: Form, clientId: string): Promise<Response> {
  const sent = required(form, 'code')
  const grantId = grantIdOf(deps.signInKey, sent)
  const notAgain = async () => {
    const isEnded = await endAndAudit(deps, request, grantId, 'code used twice')
    return invalidGrant(isEnded ? 'the code was used before' : 'the code is unknown or has expired')
  }
  const found = await deps.records.find<CodeRecord>('code', sent)
  if (found === undefined) throw await notAgain()
  const { value: code } = found
  if (code.clientId !== clientId) throw invalidGrant('the code was given to another client')
  if (code.redirectUri !== required(form, 'redirect_uri'))
    throw invalidGrant('redirect_uri: is not the one that the code was requested with')
  if (!isVerifier(required(form, 'code_verifier'), code.challenge))
    throw invalidGrant('code_verifier: does not match the code_challenge')
  requireResource(deps, form, code)
  const caller = await callerOf(deps, code)
  // Only now: a client document is fetched for nobody who has no code.
  const client = await findClient(deps, clientId, caller)
  const grant = grantOf(grantId, code, client, deps.clock.now())
  const response = await accessResponse(deps, grant, caller)
  const { puts, deletes } = usesOf(client, grant.userId, secondsOf(deps.clock))
  const { ok } = await deps.store.commit({
    checks: [{ key: found.key, value: found.bytes }],
    puts: [...withIndex(grantEntry(grant)), ...puts],
    deletes: [found.key, ...deletes],
  })
  // The same code was redeemed at the same time: the grant that the other request made ends too.
  if (!ok) throw await notAgain()
  const { userId, keyId, namespace, connectionId, view } = grant
  const where = { namespace, connectionId, view }
  // A name may be of the client's choice alone; its id tells it from others.
  await deps.audit.record('grant.created', { grantId, userId, keyId, ...where, client: grant.client, clientId })
  return response
}

function grantOf(grantId: string, code: CodeRecord, client: Client, now: number): Grant {
  const { redirectUri: _, challenge: __, days, ...allowed } = code
  return {
    ...allowed,
    grantId,
    client: client.host ?? client.name ?? client.clientId,
    createdAt: new Date(now).toISOString(),
    expires: Math.floor(now / 1000) + days * 24 * 60 * 60,
    ...(client.refreshes && { refreshes: 0 }),
  }
}

/**
 * A refresh token becomes the next one. One that comes again ends the grant, and with it what the thief may have;
 * unless nobody can have got the next one, because its write was answered with `outcome_unknown`.
 */
async function refresh(deps: OAuthDeps, request: Request, form: Form, clientId: string): Promise<Response> {
  const { store, signInKey, clock } = deps
  const token = readRefreshToken(signInKey, required(form, 'refresh_token'))
  const stored = token && (await findGrant(store, token.grantId, secondsOf(clock)))
  if (stored === undefined || stored.grant.clientId !== clientId) {
    throw invalidGrant('the refresh token is unknown, has expired, or was revoked')
  }
  const { grant, bytes } = stored
  requireResource(deps, form, grant)
  const { refreshes = 0, isUnanswered = false } = grant
  const isCurrent = token?.number === refreshes
  if (grant.refreshes === undefined || (!isCurrent && !(isUnanswered && token?.number === refreshes - 1))) {
    throw await usedBefore(deps, request, grant)
  }
  const next: Grant = isCurrent ? { ...grant, refreshes: refreshes + 1, isUnanswered: true } : grant
  const response = await accessResponse(deps, next, await callerOf(deps, grant))
  // Somebody was first: another request with this token, or an earlier one whose write nobody waits for any more.
  if (isCurrent && !(await replace(store, bytes, next))) return refresh(deps, request, form, clientId)
  // Written before the answer: no client that sends the old token from now on is still waiting for this answer.
  const { isUnanswered: _, ...answered } = next
  const isOurs = await replace(store, isCurrent ? grantEntry(next).value : bytes, answered).catch((error) => {
    // The new number is in the store, so the answer holds.
    if (error instanceof StoreError) return true
    throw error
  })
  if (!isOurs) throw await usedBefore(deps, request, grant)
  return response
}

/** Writes the grant in place of these bytes. False if somebody else was first. */
async function replace(store: Pick<Store, 'commit'>, bytes: Uint8Array, grant: Grant): Promise<boolean> {
  const checks = [{ key: keyOf('grant', grant.grantId), value: bytes }]
  return (await store.commit({ checks, puts: [grantEntry(grant)] })).ok
}

async function usedBefore(deps: OAuthDeps, request: Request, { grantId }: Grant): Promise<OAuthError> {
  await endAndAudit(deps, request, grantId, 'refresh token used twice')
  return invalidGrant('the refresh token was used before')
}

type Allowed = Pick<Grant, 'keyId' | 'namespace' | 'connectionId' | 'view' | 'madeAt'>

/** The user whose key allowed it. Throws `invalid_grant` if the key, its access or the resource has ended. */
async function callerOf({ directory, store }: OAuthDeps, allowed: Allowed): Promise<Caller> {
  const { keyId, namespace, connectionId, view, madeAt } = allowed
  const live = await liveCaller(directory, keyId)
  if (live === undefined)
    throw invalidGrant('the API key that allowed this was revoked: sign in again with another one')
  const found = await live.directory.namespace(namespace)
  if (found === undefined || !(await canAccessNamespace(live.caller, found, live.directory))) {
    throw invalidGrant('the user no longer has access to the namespace: ask its owner, then sign in again')
  }
  const stored = connectionId === undefined ? undefined : await findConnection(store, namespace, connectionId)
  const isGone = connectionId !== undefined && stored === undefined
  if (isGone || (await resourceMadeAt(live, { namespace, view }, stored && { stored })) !== madeAt) {
    const what = connectionId !== undefined ? 'connection' : view === undefined ? 'namespace' : 'view'
    throw invalidGrant(`the ${what} that the user allowed was deleted: sign in again`)
  }
  return live.caller
}

/** The response with a new access token, and a refresh token if there is one. Send it only once the grant is stored. */
async function accessResponse(deps: OAuthDeps, grant: Grant, caller: Caller): Promise<Response> {
  const { signInKey } = deps
  const iat = secondsOf(deps.clock)
  const exp = Math.min(iat + accessTokenSeconds, grant.expires)
  const claims: ServiceTokenClaims = {
    iss: deps.issuer,
    aud: resourceOf(deps, grant),
    sub: grant.userId,
    key: grant.keyId,
    jti: newTokenId(deps.tokenIdKey, grant.userId),
    // Revoking the grant's id revokes the token.
    par: [grant.grantId],
    iat,
    exp,
    policy: policyOf(grant),
  }
  const token = await deps.sign(claims, caller)
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
async function endAndAudit(
  { store, audit, clock }: OAuthDeps,
  request: Request,
  grantId: string,
  reason: GrantEnd,
): Promise<boolean> {
  if (!(await endGrant(store, grantId, secondsOf(clock), allowanceOf(request)))) return false
  await audit.record('grant.ended', { grantId, reason })
  return true
}

/** The grant of an access token of ours, expired or not. */
async function grantOfAccessToken({ authenticator, issuer }: OAuthDeps, token: string): Promise<string | undefined> {
  const claims = await authenticator.claimsOf(token)
  return claims === undefined || claims.aud === issuer ? undefined : claims.par?.[0]
}

/** `resource` may be left out; if sent, it must be the one of the consent. */
function requireResource(endpoints: Endpoints, form: Form, allowed: Resource): void {
  const resource = form.one('resource')
  if (resource === undefined || resource === resourceOf(endpoints, allowed)) return
  throw new OAuthError('invalid_target', 'resource: is not the one that was allowed')
}

function invalidGrant(why: string): OAuthError {
  return new OAuthError('invalid_grant', why)
}

function required(form: Form, name: string): string {
  const value = form.one(name)
  if (value === undefined || value === '') throw new OAuthError('invalid_request', `${name}: is missing`)
  return value
}

/** RFC 7636, 4.6. */
function isVerifier(verifier: string, challenge: string): boolean {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const digest = Bun.SHA256.hash(verifier, 'base64url')
  return timingSafeEqual(Buffer.from(digest), Buffer.from(challenge))
}
