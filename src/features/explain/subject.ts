/** The credential that is explained (contract, 21.1). */

import { type Caller, callerOfToken, endedBy } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { secondsOf } from '../../clock.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { ExplainedToken, Subject } from '../../model/explain.ts'
import type { ServiceTokenClaims } from '../../model/token.ts'
import { type ClaimsDeps, claimsToMint, compilingPatterns } from '../tokens/mint.ts'

/** A credential whose requests are explained; it need not be good any more. */
export interface Explained {
  readonly caller: Caller
  /** How many of its constraints are those of the credential that asks; 0 for a token, which does not tell. */
  readonly inherited: number
  /** Seconds from a token's beginning to its end. */
  readonly lifetime: number | undefined
  /** Undefined unless it is a token that exists. */
  readonly token: { readonly claims: ServiceTokenClaims; readonly state: ExplainedToken['state'] } | undefined
}

/** Throws 404 for a token that the caller may not have explained, and for a policy what `POST /tokens` throws. */
export async function readSubject(
  deps: ClaimsDeps,
  context: RequestContext,
  { token, policy, organizationId }: Subject,
): Promise<Explained> {
  const { caller, directory } = context
  const isPolicy = policy !== undefined || organizationId !== undefined
  if (token !== undefined && isPolicy) throw invalidRequest('token: send it, or a policy, and not both')
  if (token !== undefined) return tokenSubject(deps, context, token)
  const own = caller.token && ({ claims: caller.token, state: 'active' } as const)
  if (!isPolicy) return { caller, inherited: 0, lifetime: own && lifetimeOf(own.claims), token: own }
  const body = { ...(policy !== undefined && { policy }), ...(organizationId !== undefined && { organizationId }) }
  await allowanceOf(context.request).run(compilingPatterns(body)) // 429
  const claims = await claimsToMint(body, context, deps) // 400, 403
  const key = await directory.apiKey(caller.keyId)
  const minted = key && callerOfToken(claims, key)
  if (minted === undefined) throw notFound()
  return { caller: minted, inherited: caller.blocks.length, lifetime: lifetimeOf(claims), token: undefined }
}

const lifetimeOf = ({ iat, exp }: ServiceTokenClaims) => exp - iat

async function tokenSubject(
  { authenticator, clock, issuer }: ClaimsDeps,
  { caller, directory }: RequestContext,
  text: string,
): Promise<Explained> {
  const claims = await authenticator.claimsOf(text)
  const key = claims && (await directory.apiKey(claims.key))
  if (claims === undefined || key === undefined || !mayExplain(caller, claims)) throw notFound()
  const explained = callerOfToken(claims, key)
  if (explained === undefined) throw notFound()
  const isExpired = claims.exp <= secondsOf(clock)
  const [, , namespace = '', connection, viewName = ''] = claims.aud.slice(issuer.length).split('/')
  const isAtView = connection === 'mcp' && viewName !== ''
  const view = isAtView ? await directory.view(namespace, viewName) : undefined
  const isRevoked = (isAtView && view === undefined) || (await endedBy(claims, key, directory)) !== undefined
  return {
    // A client that signed in at a view is narrowed by it.
    caller: { ...explained, blocks: [...explained.blocks, ...(view?.blocks ?? [])] },
    inherited: 0,
    lifetime: lifetimeOf(claims),
    token: { claims, state: isRevoked ? 'revoked' : isExpired ? 'expired' : 'active' },
  }
}

/** An API key of the same user may, an operator's, the token itself, and a token that it descends from. */
function mayExplain(
  { userId, operator, token }: Pick<Caller, 'userId' | 'operator' | 'token'>,
  { sub, jti, par = [] }: ServiceTokenClaims,
): boolean {
  return token === undefined ? operator || userId === sub : [...par, jti].includes(token.jti)
}

export function shownToken({ claims, state }: NonNullable<Explained['token']>): ExplainedToken {
  const { jti, sub, org, key, iat, exp, par = [] } = claims
  const time = (seconds: number) => new Date(seconds * 1000).toISOString()
  const dates = { issuedAt: time(iat), expiresAt: time(exp) }
  return { jti, userId: sub, organizationId: org ?? null, keyId: key, ...dates, state, parents: par }
}
