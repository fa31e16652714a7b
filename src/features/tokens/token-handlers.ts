/** `POST /tokens` (specification 4.1), and the public keys that verify its tokens, as a JWK Set (RFC 7517). */

import { auditedCaller, type Caller } from '../../auth/authenticate.ts'
import { type RequestContext, requireOperator } from '../../auth/authorizer.ts'
import { revocationOfToken } from '../../auth/revocation.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { publishedKeys } from '../../auth/signing-keys.ts'
import { isTokenIdOf } from '../../auth/token-id.ts'
import { secondsOf } from '../../clock.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { type HolderRateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { readJsonBody, readOptionalBody } from '../../http/body.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { jwksMaxAgeSeconds } from '../../limits.ts'
import { TokenRevocation } from '../../model/token.ts'
import { validatorOf } from '../../schema/check.ts'
import { compilingPatterns, type Mint } from './mint.ts'

export interface TokenDeps extends SharedParts {
  readonly mint: Mint
  /** Limits minting per API key. */
  readonly mints: HolderRateLimit
  readonly observer: { refused(reason: string): void } | undefined
}

const revocationShape = validatorOf(TokenRevocation)

export const tokenHandlers = handlersOf({ createToken, revokeToken, jwks })

async function createToken(deps: TokenDeps, request: Request): Promise<Response> {
  const { authorizer, mint, mints, denials, observer } = deps
  let known: Caller | undefined
  try {
    const { caller: sender } = await authorizer.authenticate(request) // 401, 429
    known = sender
    requireRate(mints.take(sender), 'This API key is minting tokens too fast') // 429
    refuseQuery(request.url) // 400
    const body = await readJsonBody(request) // 400
    await allowanceOf(request).run(compilingPatterns(body)) // 429
    // The client may have sent the body slowly; a credential that was revoked in the meantime must not mint.
    const context = await authorizer.authenticate(request, true) // 401
    // Signing may wait; if the credential is revoked in the meantime, the token is discarded.
    const requireValid = () => authorizer.authenticate(request, true) // 401
    const answer = await mint(body, context, requireValid) // 400, 403, 503
    return jsonResponse(JSON.stringify(answer), { 'cache-control': 'no-store' })
  } catch (thrown) {
    const { code } = asPlatformError(thrown)
    observer?.refused(code)
    if (known !== undefined) denials.recordMintRefusal(request, known, code)
    throw thrown
  }
}

const notYours = 'tokenId: this token is not yours, and only operators revoke the tokens of others by their id'

/** The bearer of a token may revoke it; its user and operators, with their API keys, also by its id alone. */
async function revokeToken(deps: TokenDeps, request: Request): Promise<Response> {
  const { authenticator, audit, clock, writes, tokenIdKey } = deps
  const { caller, change } = await writes.begin(request, () => {}, 'removal') // 401, 429, 400
  const { token, tokenId } = await readOptionalBody(request, revocationShape) // 400
  const claims = token === undefined ? undefined : await authenticator.claimsOf(token)
  const jti = claims?.jti ?? tokenId
  if (jti === undefined || (token !== undefined && tokenId !== undefined))
    throw invalidRequest('send `token`, a token that this postern minted, or `tokenId`, and not both')
  const isChanged = await change(async (context) => {
    if (claims === undefined) requireMayRevoke(context, tokenIdKey, jti) // 403
    if (await context.directory.isRevoked(jti)) return { result: false }
    const write = revocationOfToken(jti, { exp: claims?.exp, nowSeconds: secondsOf(clock) })
    return { write, result: true }
  })
  if (isChanged) await audit.recordDone('token.revoked', { ...auditedCaller(caller), revoked: jti })
  return jsonResponse(JSON.stringify({ success: true, tokenId: jti }), noStoreJson)
}

function requireMayRevoke(context: RequestContext, tokenIdKey: Buffer, tokenId: string): void {
  const { token, userId } = context.caller
  if (token === undefined && isTokenIdOf(tokenIdKey, tokenId, userId)) return
  requireOperator(context, notYours, 'Tokens whose text is not sent')
}

async function jwks({ authenticator, clock }: TokenDeps): Promise<Response> {
  const jwks = { keys: publishedKeys(await authenticator.keys(), secondsOf(clock)) }
  return jsonResponse(JSON.stringify(jwks), { 'cache-control': `public, max-age=${jwksMaxAgeSeconds}` })
}
