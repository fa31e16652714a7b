/** Makes a token whole: its claims, its signature, and its line in the audit log. */

import { createHash } from 'node:crypto'
import type { Authenticated, Authenticator } from '../../auth/authenticate.ts'
import { signingInput } from '../../auth/service-token.ts'
import { type Clock, secondsOf } from '../../clock.ts'
import type { CreateTokenResponse, ServiceTokenClaims } from '../../model/token.ts'
import type { Audit, AuditFields } from '../../ops/audit-log.ts'
import { mint } from './mint.ts'
import type { Signers } from './signers.ts'

export interface Minter {
  /**
   * A token of the caller, for the body of `POST /tokens`. Signing may wait: `requireAllowed` then says, by throwing,
   * that the caller's credential has ended meanwhile. Throws what `mint` throws.
   */
  mint(body: unknown, of: Authenticated, requireAllowed: () => Promise<unknown>): Promise<CreateTokenResponse>
}

export interface MinterOptions {
  readonly authenticator: Pick<Authenticator, 'keys' | 'minted'>
  readonly signers: Pick<Signers, 'sign'>
  readonly audit: Audit
  readonly issuer: string
  readonly clock: Clock
  readonly observer: { minted(): void } | undefined
}

export function createMinter({ authenticator, signers, audit, issuer, clock, observer }: MinterOptions): Minter {
  return {
    async mint(body, { caller, directory }, requireAllowed) {
      audit.requireRoom() // 503
      const nowSeconds = secondsOf(clock)
      const { active } = await authenticator.keys()
      const sign = async (claims: ServiceTokenClaims) => {
        const text = signingInput(claims, active)
        return `${text}.${await signers.sign(text, active, caller)}`
      }
      const { claims, token, expiresAt } = await mint(body, { caller, directory, issuer, nowSeconds, sign })
      await requireAllowed()
      // Before the response, so that every token that exists outside is in the audit log.
      await audit.record('token.minted', mintedFields(claims, active.kid))
      authenticator.minted(token)
      observer?.minted()
      return { token, expiresAt }
    },
  }
}

/** The policy may contain confidential values, so only its hash is logged; it shows whether two policies are equal. */
function mintedFields({ jti, par, sub, key, org, exp, policy }: ServiceTokenClaims, kid: string): AuditFields {
  const policyHash = createHash('sha256').update(JSON.stringify(policy)).digest('hex')
  return { jti, par, userId: sub, keyId: key, organizationId: org, exp, kid, constraints: policy.length, policyHash }
}
