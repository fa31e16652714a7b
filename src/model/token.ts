/** The bodies of `POST /tokens` (spec 2.1, 2.3), and the claims of a service token (contract, 3.1). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, OptionalText, oneOf } from '../schema/shapes.ts'
import { Constraint, Policy } from './constraint.ts'
import { OrganizationId, OrganizationUserId, UserId } from './names.ts'

export const CreateTokenRequest = closedObject({
  policy: Type.Optional(Policy),
  // Any text is accepted: one that is not an id gets the same response as an unknown organization (contract, 3.4).
  organizationId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
})
export type CreateTokenRequest = Static<typeof CreateTokenRequest>

export const CreateTokenResponse = closedObject({
  token: Type.String(),
  expiresAt: Type.String({ format: 'date-time' }),
})
export type CreateTokenResponse = Static<typeof CreateTokenResponse>

export const TokenError = closedObject({ error: Type.String(), message: OptionalText })

/** The syntax of a token's id, `jti`. */
export const tokenIdShape = /^tok_[A-Za-z0-9_-]{22}$/

/** The token to revoke: its text; or its id, with the API key of its user or of an operator. */
export const TokenRevocation = closedObject({
  token: Type.Optional(Type.String()),
  tokenId: Type.Optional(Type.String({ pattern: tokenIdShape.source })),
})
export const TokenRevoked = closedObject({ success: Type.Literal(true), tokenId: Type.String() })

/** Up to the end of the year 9999, the last that a date can show. */
const EpochSeconds = Type.Integer({ minimum: 0, maximum: 253_402_300_799 })

/** `iat` and `exp` are Unix seconds. `par` lists the ids of the ancestors, oldest first. */
export const ServiceTokenClaims = closedObject({
  iss: Type.String(),
  aud: Type.String(),
  sub: Type.Union([UserId, OrganizationUserId]),
  key: Type.String(),
  org: Type.Optional(OrganizationId),
  jti: Type.String(),
  par: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
  iat: EpochSeconds,
  exp: EpochSeconds,
  /** The ancestors' constraints, oldest first, then the token's own. Their number is bounded by the token's length. */
  policy: Type.Array(Constraint),
})
export type ServiceTokenClaims = Static<typeof ServiceTokenClaims>

/** The keys that sign tokens, with the next one. `acceptedUntil`: of a retired key whose tokens are still good. */
export const SigningKeyList = closedObject({
  keys: Type.Array(
    closedObject({
      kid: Type.String(),
      state: oneOf(['next', 'active', 'retired']),
      since: Type.String({ format: 'date-time' }),
      acceptedUntil: nullable(Type.String({ format: 'date-time' })),
    }),
  ),
})
export type SigningKeyList = Static<typeof SigningKeyList>
