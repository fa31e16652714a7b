/** The bodies of `POST /tokens` (spec 2.1, 2.3) and what a service token claims (contract 3). */

import { type Static, Type } from '@sinclair/typebox'
import { Constraint, Policy } from './constraint.ts'
import { OrganizationId, UserId } from './names.ts'

export const CreateTokenRequest = Type.Object(
  {
    policy: Type.Optional(Policy),
    // Any other text is an organization that does not exist, and is answered like one (contract 3).
    organizationId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  },
  { additionalProperties: false },
)
export type CreateTokenRequest = Static<typeof CreateTokenRequest>

export const CreateTokenResponse = Type.Object(
  { token: Type.String(), expiresAt: Type.String({ format: 'date-time' }) },
  { additionalProperties: false },
)
export type CreateTokenResponse = Static<typeof CreateTokenResponse>

export const TokenError = Type.Object(
  { error: Type.String(), message: Type.Optional(Type.String()) },
  { additionalProperties: false },
)

/** Of a token's id, `jti`. */
export const tokenIdShape = /^tok_[A-Za-z0-9_-]{22}$/

/** To the end of the year 9999: what a date can say. */
const EpochSeconds = Type.Integer({ minimum: 0, maximum: 253_402_300_799 })

/** Whole seconds since 1970 in `iat` and `exp`. `par` lists the ancestors' ids, oldest first. */
export const ServiceTokenClaims = Type.Object(
  {
    iss: Type.String(),
    aud: Type.String(),
    sub: UserId,
    key: Type.String(),
    org: Type.Optional(OrganizationId),
    jti: Type.String(),
    par: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    iat: EpochSeconds,
    exp: EpochSeconds,
    /** The ancestors' constraints first, then its own, in order. No bound on the count: the token's length is one. */
    policy: Type.Array(Constraint),
  },
  { additionalProperties: false },
)
export type ServiceTokenClaims = Static<typeof ServiceTokenClaims>
