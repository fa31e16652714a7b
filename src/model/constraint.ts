/** A token's policy as it is written in a request and in a token (spec 2.2). */

import { type Static, type TLiteral, type TSchema, Type } from '@sinclair/typebox'
import { constraintRpcEntriesMax, rpcKeyCharsMax, rpcPatternCharsMax } from '../limits.ts'
import { Slug } from './names.ts'

export const resourceTypes = ['connections', 'servers', 'namespaces', 'skills'] as const
export type ResourceType = (typeof resourceTypes)[number]

export const operationKinds = ['read', 'write', 'execute'] as const
export type OperationKind = (typeof operationKinds)[number]

function oneOf<const T extends readonly string[]>(values: T) {
  const literals = values.map((value) => Type.Literal(value)) as { [I in keyof T]: TLiteral<T[I]> }
  return Type.Union(literals as unknown as [TLiteral<T[number]>], {
    errorMessage: `must be one of ${values.join(', ')}`,
  })
}

function oneOrMany<T extends TSchema>(item: T) {
  return Type.Union([item, Type.Array(item, { minItems: 1 })])
}

/** Pairs that must all match. */
const MetadataPairs = Type.Record(
  // The bound is a pattern, because a record's key schema checks nothing else.
  Type.String({ pattern: '^[^]+$' }),
  Type.String(),
  {
    additionalProperties: false,
    minProperties: 1,
    keyMessage: 'is not a metadata key: it is empty',
  },
)

/**
 * Spec 2.2. How long lists and texts may be is not said here: all of a policy must fit a token, which bounds their sum
 * (`tokenCharsMax`). Every field restricts; an absent one does not; an empty constraint is a mistake, not a freedom.
 */
export const Constraint = Type.Object(
  {
    namespaces: Type.Optional(oneOrMany(Slug)),
    resources: Type.Optional(oneOrMany(oneOf(resourceTypes))),
    operations: Type.Optional(oneOrMany(oneOf(operationKinds))),
    metadata: Type.Optional(oneOrMany(MetadataPairs)),
    ttl: Type.Optional(
      Type.Union([
        Type.String({
          pattern: '^[0-9]+[smh]$',
          maxLength: 64,
          errorMessage: 'must be digits and one of s, m, h, like 30m',
        }),
        Type.Integer({ errorMessage: 'must be a whole number of seconds, or a duration like 30m' }),
      ]),
    ),
    rpcReqMatch: Type.Optional(
      Type.Record(
        // Characters, not halves of them.
        Type.String({ pattern: `^(?:[^\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){1,${rpcKeyCharsMax}}$` }),
        Type.String({ minLength: 1, maxLength: rpcPatternCharsMax }),
        {
          additionalProperties: false,
          minProperties: 1,
          maxProperties: constraintRpcEntriesMax,
          keyMessage: `is not a path: 1 to ${rpcKeyCharsMax} characters`,
        },
      ),
    ),
  },
  { additionalProperties: false, minProperties: 1 },
)
export type Constraint = Static<typeof Constraint>

/** Spec 2.1: at least one item when present. */
export const Policy = Type.Array(Constraint, { minItems: 1 })
export type Policy = Static<typeof Policy>
