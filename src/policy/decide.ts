/**
 * The decision: may the holder of these blocks do this? Every block must allow it, and within a block
 * every field (spec 2.2). Pure: no I/O, no clock; a block's ttl has become the token's expiry when the
 * token was minted.
 */

import type { OperationKind, ResourceType } from '../model/constraint.ts'
import type { Block } from './block.ts'
import { constraintAllows, type MetadataFacts } from './metadata.ts'
import { isParamsRule, ruleCost, rulePasses } from './rpc-match.ts'

/** What one request attempts. */
export interface Access {
  readonly namespace: string
  readonly resource: ResourceType
  readonly operation: OperationKind
  /**
   * The connection's facts; 'none' where there are none, so that any metadata constraint refuses;
   * 'narrowed' where the answer is narrowed row by row instead of being refused (a list).
   */
  readonly metadata: MetadataFacts | 'none' | 'narrowed'
  /** The body of an MCP JSON-RPC request, where the request is one: `rpcReqMatch` leaves others alone. */
  readonly rpc?: unknown
  /** The body is a client's reply to a request of the server, in a session that this very token opened. */
  readonly isReply?: boolean
}

export const fields = ['namespaces', 'resources', 'operations', 'metadata', 'rpcReqMatch'] as const
export type Field = (typeof fields)[number]

export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false
      /** The position of the refusing block in the token's policy. */
      readonly block: number
      readonly field: Field
      /** Of `rpcReqMatch`: the rule that refuses. */
      readonly path?: string
      /** False when the refusal must look like absence: the namespace is not the holder's to see. */
      readonly visible: boolean
    }

/** Every block's `namespaces` come first: what is not visible is 404, whatever else is missing (contract 4). */
export function decide(blocks: readonly Block[], access: Access): Decision {
  return drained(decideInSteps(blocks, access, fieldsInOrder, hiding))
}

/** Here and below without `rpcReqMatch`, which comes last: its patterns are what costs. */
const fieldsInOrder: readonly Field[] = ['namespaces', 'resources', 'operations', 'metadata']
const hiding: ReadonlySet<Field> = new Set<Field>(['namespaces'])

/** Of a connection that is there: one whose metadata the constraints do not allow is not visible either. */
export function decideOnConnection(blocks: readonly Block[], access: Access): Decision {
  return drained(decideOnMessage(blocks, access))
}

/**
 * The same in steps: yields what the next one costs (`costToAsk`) before it is taken. For messages, whose rules may
 * be many.
 */
export function decideOnMessage(blocks: readonly Block[], access: Access): Generator<number, Decision> {
  return decideInSteps(blocks, access, connectionFieldsInOrder, hidingConnection)
}

const connectionFieldsInOrder: readonly Field[] = ['namespaces', 'metadata', 'resources', 'operations']
const hidingConnection: ReadonlySet<Field> = new Set<Field>(['namespaces', 'metadata'])

/** All at once. */
export function drained<T>(steps: Generator<number, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

function* decideInSteps(
  blocks: readonly Block[],
  access: Access,
  order: readonly Field[],
  hides: ReadonlySet<Field>,
): Generator<number, Decision> {
  for (const field of order) {
    const block = blocks.findIndex((one) => !allows[field](one, access))
    if (block >= 0) return { allowed: false, block, field, visible: !hides.has(field) }
  }
  return yield* decideOnRules(blocks, access)
}

function* decideOnRules(blocks: readonly Block[], { rpc: body, isReply }: Access): Generator<number, Decision> {
  if (body === undefined) return { allowed: true }
  for (const [block, { rpc: rules = [] }] of blocks.entries()) {
    // A reply names no method and no tool: a block that is about those alone has nothing to say of it.
    if (isReply && rules.every(isParamsRule)) continue
    for (const rule of rules) {
      yield ruleCost(rule, body)
      if (!rulePasses(rule, body))
        return { allowed: false, block, field: 'rpcReqMatch', path: rule.path, visible: true }
    }
  }
  return { allowed: true }
}

/** One test a field; true when the block does not have the field. */
export const allows: Record<Field, (block: Block, access: Access) => boolean> = {
  namespaces: ({ namespaces }, access) => namespaces === undefined || namespaces.includes(access.namespace),
  resources: ({ resources }, access) => resources === undefined || resources.includes(access.resource),
  operations: ({ operations }, access) => operations === undefined || operations.includes(access.operation),
  metadata: ({ metadata }, access) => {
    if (metadata === undefined || access.metadata === 'narrowed') return true
    return access.metadata !== 'none' && constraintAllows(metadata, access.metadata)
  },
  rpcReqMatch: (block, access) => drained(decideOnRules([block], access)).allowed,
}
