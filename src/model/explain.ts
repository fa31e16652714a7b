/** The bodies of what explains policies, under `/tokens` (contract, 21). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'
import { operationKinds, Policy, resourceTypes } from './constraint.ts'
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

/** The names of findings, and how serious each is (contract, 21.3). */
export const findingCodes = {
  contradiction: 'error',
  'empty-scope': 'warning',
  'handshake-refused': 'warning',
  'unanchored-pattern': 'warning',
  'unknown-tool': 'warning',
  'also-matches': 'warning',
  'lifetime-beyond-parent': 'warning',
  'dead-constraint': 'info',
  'wider-than-used': 'info',
} as const
export type FindingCode = keyof typeof findingCodes

export const LintRequest = Subject

export const Finding = closedObject({
  code: oneOf(Object.keys(findingCodes) as FindingCode[]),
  severity: oneOf(['error', 'warning', 'info']),
  place: Type.String(),
  /** The place of the second constraint. */
  other: nullable(Type.String()),
  words: Type.String(),
  examples: Type.Array(Type.String()),
  docs: Type.String(),
})
export type Finding = Static<typeof Finding>

export const LintAnswer = closedObject({
  findings: Type.Array(Finding),
  searched: closedObject({
    connections: Type.Integer(),
    tools: Type.Integer(),
    calls: Type.Integer(),
    complete: Type.Boolean(),
  }),
})
export type LintAnswer = Static<typeof LintAnswer>

/** Contract 21.4: connections on a page of the answer that says what a policy covers. Past it: 400. */
const coveredConnectionsMax = 100
export const coveredConnectionsDefault = 25

export const CoverageRequest = closedObject({
  ...Subject.properties,
  namespace: Type.Optional(Slug),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: coveredConnectionsMax })),
  cursor: Type.Optional(Type.String()),
})
export type CoverageRequest = Static<typeof CoverageRequest>

const covered = { verdict: Verdict, place: nullable(Type.String()) }
const CoveredTool = closedObject({ name: Type.String(), ...covered, missing: Type.Array(Type.String()) })
export type CoveredTool = Static<typeof CoveredTool>
const CoveredConnection = closedObject({
  namespace: Type.String(),
  connectionId: Type.String(),
  ...covered,
  /** Null: not known. */
  tools: nullable(Type.Array(CoveredTool)),
})
export type CoveredConnection = Static<typeof CoveredConnection>

const count = Type.Integer()
export const Coverage = closedObject({
  /** Of all that the caller sees, on the first page. */
  summary: nullable(
    closedObject({
      connections: closedObject({ some: count, total: count }),
      tools: closedObject({ allow: count, depends: count, refuse: count, total: count }),
      /** Connections whose tools are not known. */
      unknown: count,
      complete: Type.Boolean(),
    }),
  ),
  connections: Type.Array(CoveredConnection),
  nextCursor: nullable(Type.String()),
})
export type Coverage = Static<typeof Coverage>

const Compared = closedObject({ token: Subject.properties.token, policy: Subject.properties.policy })
export const DiffRequest = closedObject({ old: Compared, new: Compared, namespace: Type.Optional(Slug) })
export type DiffRequest = Static<typeof DiffRequest>

export const Diff = closedObject({
  verdict: oneOf(['wider', 'not_wider_found']),
  because: nullable(oneOf(['request', 'lifetime'])),
  /** A request that the new policy allows. */
  example: nullable(DescribedRequest),
  /** The place of the old policy that refuses it. */
  refusedBy: nullable(Type.String()),
  /** In seconds. */
  lifetime: closedObject({ old: count, new: count }),
  searched: closedObject({
    requests: count,
    connections: count,
    tools: count,
    values: count,
    complete: Type.Boolean(),
  }),
  words: Type.String(),
})
export type Diff = Static<typeof Diff>

/** Contract 21.6: days of the record of calls from which postern makes a policy. Past it: 400. */
export const suggestedDaysMax = 30
export const suggestedDaysDefault = 7

export const SuggestRequest = closedObject({
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: suggestedDaysMax,
      errorMessage: `must be a whole number from 1 to ${suggestedDaysMax}`,
    }),
  ),
  namespace: Type.Optional(Slug),
  token: Subject.properties.token,
})
export type SuggestRequest = Static<typeof SuggestRequest>

export const suggestionNotes = ['cross-product', 'arguments-unknown', 'too-large', 'no-calls', 'not-recorded'] as const
export const Suggestion = closedObject({
  policy: nullable(Policy),
  from: closedObject({
    since: Type.String({ format: 'date-time' }),
    until: Type.String({ format: 'date-time' }),
    ...{ calls: count, refused: count, connections: count, tools: count },
    recorded: Type.Boolean(),
    complete: Type.Boolean(),
  }),
  notes: Type.Array(closedObject({ code: oneOf(suggestionNotes), words: Type.String() })),
})
export type Suggestion = Static<typeof Suggestion>
