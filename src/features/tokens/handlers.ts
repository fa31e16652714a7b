/** `POST /tokens` (specification 4.1), and the public keys that verify its tokens, as a JWK Set (RFC 7517). */

import { createHash } from 'node:crypto'
import type { Authenticator, Caller } from '../../auth/authenticate.ts'
import type { Denials } from '../../auth/denials.ts'
import { signingInput } from '../../auth/service-token.ts'
import { publishedKeys } from '../../auth/signing-keys.ts'
import { rateLimited } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { refuseQuery } from '../../http/query.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { jsonResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import { jwksMaxAgeSeconds } from '../../limits.ts'
import type { CreateTokenResponse, ServiceTokenClaims } from '../../model/token.ts'
import type { Audit, AuditFields } from '../../ops/audit-log.ts'
import { mint } from './mint.ts'
import type { Signers } from './signers.ts'

export interface TokenDeps {
  readonly authenticator: Authenticator
  readonly signers: Pick<Signers, 'sign'>
  /** Limits minting per API key. */
  readonly mints: RateLimit
  readonly audit: Audit
  readonly denials: Denials
  readonly issuer: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly observer: { minted(): void; refused(reason: string): void } | undefined
}

export function tokenHandlers({
  authenticator,
  signers,
  mints,
  audit,
  denials,
  issuer,
  now,
  observer,
}: TokenDeps): Pick<Handlers, 'createToken' | 'jwks'> {
  return {
    async createToken(request) {
      let known: Caller | undefined
      try {
        const { caller: sender } = await authenticator.authenticate(request) // 401, 429
        known = sender
        const wait = mints.take(sender.keyId)
        if (wait > 0) throw rateLimited('This API key is minting tokens too fast', wait) // 429
        refuseQuery(request.url) // 400
        const body = await readJsonBody(request) // 400
        // The client may have sent the body slowly; a credential that was revoked in the meantime must not mint.
        const { caller, registry } = await authenticator.authenticate(request) // 401, 429
        const nowSeconds = Math.floor(now() / 1000)
        const { active } = await authenticator.keys()
        const sign = async (claims: ServiceTokenClaims) => {
          const text = signingInput(claims, active)
          return `${text}.${await signers.sign(text, active, caller)}`
        }
        // 400, 403, 503
        const { claims, token, expiresAt } = await mint(body, { caller, registry, issuer, nowSeconds, sign })
        // Signing may have waited; if the credential was revoked in the meantime, the token is discarded.
        await authenticator.authenticate(request) // 401, 429
        // Before the response, so that every token that exists outside is in the audit log.
        await audit.record('token.minted', mintedFields(claims, active.kid))
        authenticator.minted(token)
        observer?.minted()
        const answer: CreateTokenResponse = { token, expiresAt }
        return jsonResponse(JSON.stringify(answer), { 'cache-control': 'no-store' })
      } catch (thrown) {
        const { code } = asPlatformError(thrown)
        observer?.refused(code)
        if (known !== undefined) denials.recordMintRefusal(request, known, code)
        throw thrown
      }
    },
    async jwks() {
      const jwks = { keys: publishedKeys(await authenticator.keys(), Math.floor(now() / 1000)) }
      return jsonResponse(JSON.stringify(jwks), { 'cache-control': `public, max-age=${jwksMaxAgeSeconds}` })
    },
  }
}

/** The policy may contain confidential values, so only its hash is logged; it shows whether two policies are equal. */
function mintedFields({ jti, par, sub, key, org, exp, policy }: ServiceTokenClaims, kid: string): AuditFields {
  const policyHash = createHash('sha256').update(JSON.stringify(policy)).digest('hex')
  return { jti, par, userId: sub, keyId: key, organizationId: org, exp, kid, constraints: policy.length, policyHash }
}
