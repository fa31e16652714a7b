/** The schema of a policy, in requests and in tokens (spec 2.2). */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { rpcPatternCharsMax } from '../limits.ts'
import { oneOf } from '../schema/shapes.ts'
import { Slug } from './names.ts'

/** Spec 8: characters in a path of `rpcReqMatch`. Past it: 400. */
const rpcKeyCharsMax = 200
/** Ours: paths in one `rpcReqMatch`. Past it: 400. */
const constraintRpcEntriesMax = 32

export const resourceTypes = ['connections', 'servers', 'namespaces', 'skills'] as const
export type ResourceType = (typeof resourceTypes)[number]

export const operationKinds = ['read', 'write', 'execute'] as const
export type OperationKind = (typeof operationKinds)[number]

function oneOrMany<T extends TSchema>(item: T) {
  return Type.Union([item, Type.Array(item, { minItems: 1 })])
}

function oneOrMoreOf<const T extends readonly string[]>(values: T) {
  return oneOrMany(oneOf(values, { errorMessage: `must be one of ${values.join(', ')}` }))
}

/** Pairs of which all must match. The key is a pattern, because TypeBox checks nothing else of a record's keys. */
const MetadataPairs = Type.Record(Type.String({ pattern: '^[^]+$' }), Type.String(), {
  additionalProperties: false,
  minProperties: 1,
  keyMessage: 'is not a metadata key: it is empty',
})

const Ttl = Type.Union([
  Type.String({ pattern: '^[0-9]+[smh]$', maxLength: 64, errorMessage: 'must be digits and one of s, m, h, like 30m' }),
  Type.Integer({ errorMessage: 'must be a whole number of seconds, or a duration like 30m' }),
])

/** Counts characters: a surrogate pair is one. */
const RpcPath = Type.String({
  pattern: `^(?:[^\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){1,${rpcKeyCharsMax}}$`,
})

const RpcReqMatch = Type.Record(RpcPath, Type.String({ minLength: 1, maxLength: rpcPatternCharsMax }), {
  additionalProperties: false,
  minProperties: 1,
  maxProperties: constraintRpcEntriesMax,
  keyMessage: `is not a path: 1 to ${rpcKeyCharsMax} characters`,
})

/**
 * Spec 2.2. Lists and texts have no bounds of their own: the whole policy must fit a token (`tokenCharsMax`). Every
 * field restricts, an absent one does not, and an empty constraint is an error.
 */
export const Constraint = Type.Object(
  {
    namespaces: Type.Optional(oneOrMany(Slug)),
    resources: Type.Optional(oneOrMoreOf(resourceTypes)),
    operations: Type.Optional(oneOrMoreOf(operationKinds)),
    metadata: Type.Optional(oneOrMany(MetadataPairs)),
    ttl: Type.Optional(Ttl),
    rpcReqMatch: Type.Optional(RpcReqMatch),
  },
  { additionalProperties: false, minProperties: 1 },
)
export type Constraint = Static<typeof Constraint>

/** Spec 2.1: at least one item when present. */
export const Policy = Type.Array(Constraint, { minItems: 1 })
