/** `POST /tokens` (specification 4.1), and the public keys that verify its tokens, as a JWK Set (RFC 7517). */

import type { Caller } from '../../auth/authenticate.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { publishedKeys } from '../../auth/signing-keys.ts'
import { secondsOf } from '../../clock.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { type HolderRateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { readJsonBody } from '../../http/body.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { jsonResponse } from '../../http/respond.ts'
import { jwksMaxAgeSeconds } from '../../limits.ts'
import { compilingPatterns, type Mint } from './mint.ts'

export interface TokenDeps extends SharedParts {
  readonly mint: Mint
  /** Limits minting per API key. */
  readonly mints: HolderRateLimit
  readonly observer: { refused(reason: string): void } | undefined
}

export const tokenHandlers = handlersOf({ createToken, jwks })

async function createToken(deps: TokenDeps, request: Request): Promise<Response> {
  const { authenticator, mint, mints, denials, observer } = deps
  let known: Caller | undefined
  try {
    const { caller: sender } = await authenticator.authenticate(request) // 401, 429
    known = sender
    requireRate(mints.take(sender), 'This API key is minting tokens too fast') // 429
    refuseQuery(request.url) // 400
    const body = await readJsonBody(request) // 400
    await allowanceOf(request).run(compilingPatterns(body)) // 429
    // The client may have sent the body slowly; a credential that was revoked in the meantime must not mint.
    const { caller, directory } = await authenticator.authenticate(request) // 401, 429
    // Signing may wait; if the credential is revoked in the meantime, the token is discarded.
    const isStillValid = () => authenticator.authenticate(request) // 401, 429
    const answer = await mint(body, { caller, directory }, isStillValid) // 400, 403, 503
    return jsonResponse(JSON.stringify(answer), { 'cache-control': 'no-store' })
  } catch (thrown) {
    const { code } = asPlatformError(thrown)
    observer?.refused(code)
    if (known !== undefined) denials.recordMintRefusal(request, known, code)
    throw thrown
  }
}

async function jwks({ authenticator, clock }: TokenDeps): Promise<Response> {
  const jwks = { keys: publishedKeys(await authenticator.keys(), secondsOf(clock)) }
  return jsonResponse(JSON.stringify(jwks), { 'cache-control': `public, max-age=${jwksMaxAgeSeconds}` })
}
