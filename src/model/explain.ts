/** The bodies of `POST /tokens/explain` (contract, 21). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'
import { operationKinds, resourceTypes } from './constraint.ts'
import { ConnectionId, OrganizationId, Slug } from './names.ts'
import { CreateTokenRequest } from './token.ts'

const Facts = Type.Record(Type.String({ pattern: '^[^]+$' }), Type.Unknown(), { additionalProperties: false })
const AnyObject = Type.Record(Type.String(), Type.Unknown())

/** A request, of which anything may be left out: it is not known then. */
export const DescribedRequest = closedObject({
  namespace: Type.Optional(Slug),
  resource: Type.Optional(oneOf(resourceTypes)),
  operation: Type.Optional(oneOf(operationKinds)),
  connection: Type.Optional(ConnectionId),
  metadata: Type.Optional(Facts),
  tool: Type.Optional(Type.String()),
  arguments: Type.Optional(AnyObject),
  message: Type.Optional(AnyObject),
})
export type DescribedRequest = Static<typeof DescribedRequest>

/** The subject: a token, a policy that the caller could mint with, or the caller's own credential. */
export const Subject = closedObject({ token: Type.Optional(Type.String()), ...CreateTokenRequest.properties })
export type Subject = Static<typeof Subject>

export const ExplainRequest = closedObject({ ...Subject.properties, request: Type.Optional(DescribedRequest) })
export type ExplainRequest = Static<typeof ExplainRequest>

export const Verdict = oneOf(['allow', 'refuse', 'depends'])
export type Verdict = Static<typeof Verdict>

/** One decision. `missing`: the parts of the request that it asks about and that are not known. */
const decided = { place: Type.String(), verdict: Verdict, missing: Type.Array(Type.String()), words: Type.String() }

export const ExplainedConstraint = closedObject({
  place: decided.place,
  block: Type.Integer(),
  field: Type.String(),
  /** Of a rule of `rpcReqMatch`. */
  path: nullable(Type.String()),
  verdict: Verdict,
  missing: decided.missing,
  words: decided.words,
})
export type ExplainedConstraint = Static<typeof ExplainedConstraint>

export const ExplainedOutside = closedObject(decided)
export type ExplainedOutside = Static<typeof ExplainedOutside>

const Note = closedObject({ code: oneOf(['connection_state', 'pin', 'unknown_tool']), words: Type.String() })
export type Note = Static<typeof Note>

export const ExplainedToken = closedObject({
  jti: Type.String(),
  userId: Type.String(),
  organizationId: nullable(OrganizationId),
  keyId: Type.String(),
  issuedAt: Type.String({ format: 'date-time' }),
  expiresAt: Type.String({ format: 'date-time' }),
  state: oneOf(['active', 'expired', 'revoked']),
  parents: Type.Array(Type.String()),
})
export type ExplainedToken = Static<typeof ExplainedToken>

export const Explanation = closedObject({
  verdict: Verdict,
  /** The status that the platform answers a refusal with. */
  status: nullable(Type.Integer()),
  words: Type.String(),
  decidedBy: nullable(Type.Union([ExplainedConstraint, ExplainedOutside])),
  outside: Type.Array(ExplainedOutside),
  blocks: Type.Array(
    closedObject({
      block: Type.Integer(),
      inherited: Type.Boolean(),
      verdict: Verdict,
      constraints: Type.Array(ExplainedConstraint),
    }),
  ),
  token: nullable(ExplainedToken),
  notes: Type.Array(Note),
})
export type Explanation = Static<typeof Explanation>
