/**
 * The decision: do these blocks allow this access? Every block must allow it, and within a block every field (spec
 * 2.2). Pure: no I/O, no clock; a block's ttl became part of the token's expiry when it was minted.
 */

import type { OperationKind, ResourceType } from '../model/constraint.ts'
import { drained } from '../schema/steps.ts'
import type { Block } from './block.ts'
import { constraintAllows, type MetadataFacts } from './metadata.ts'
import { isParamsRule, isPreliminary, RpcBody } from './rpc-match.ts'

export interface Access {
  readonly namespace: string
  readonly resource: ResourceType
  readonly operation: OperationKind
  /** 'none': no connection, so any metadata constraint denies. 'narrowed': a list, narrowed row by row, not denied. */
  readonly metadata: MetadataFacts | 'none' | 'narrowed'
  /** The body of an MCP request. `rpcReqMatch` does not apply to other requests. */
  readonly rpc?: unknown
  /** The body is a client's response to a request of the server, in a session that this same token opened. */
  readonly isReply?: boolean
}

/** The fields that can deny without the message. A block's ttl is not among them. */
export type PlainField = 'namespaces' | 'resources' | 'operations' | 'metadata'
export type Field = PlainField | 'rpcReqMatch'

export type Decision =
  | { readonly allowed: true }
  | {
      readonly allowed: false
      readonly block: number
      /** The name of the denying block, if it is not the token's. */
      readonly name?: string | undefined
      readonly field: Field
      /** For `rpcReqMatch`: the path of the rule that denies. */
      readonly path?: string
      /** False if the response must be 404: the caller may not know that the thing exists. */
      readonly visible: boolean
    }

/** Decides in the order of the contract, 4.4: a namespace that the policy hides is 404 before any other refusal. */
export function decide(blocks: readonly Block[], access: Access): Decision {
  return drained(decideInSteps(blocks, access, fieldsInOrder, hiding))
}

/** Decides on a list that is narrowed by `namespaceFilter`. */
export function decideOnList(blocks: readonly Block[], access: Omit<Access, 'namespace'>): Decision {
  return drained(decideInSteps(blocks, { ...access, namespace: '' }, fieldsInOrder.slice(1), hiding))
}

/** Whether the `namespaces` of all blocks name a namespace. Made once, and asked for many. */
export function namespaceFilter(blocks: readonly Block[]): (namespace: string) => boolean {
  const lists = blocks.flatMap(({ namespaces }) => (namespaces === undefined ? [] : [new Set(namespaces)]))
  return (namespace) => lists.every((names) => names.has(namespace))
}

/** `rpcReqMatch` is in neither order: it is expensive and always comes last. */
export const fieldsInOrder: readonly PlainField[] = ['namespaces', 'resources', 'operations', 'metadata']
/** The fields whose refusal is 404. */
export const hiding: ReadonlySet<Field> = new Set<Field>(['namespaces'])

/** Decides on an existing connection. If its metadata is not allowed, it is invisible too. */
export function decideOnConnection(blocks: readonly Block[], access: Access): Decision {
  return drained(decideOnMessage(blocks, access))
}

/** As `decideOnConnection`, for many rules: in steps, and yields the cost (`costToAsk`) of each before it. */
export function decideOnMessage(blocks: readonly Block[], access: Access): Generator<number, Decision> {
  return decideInSteps(blocks, access, connectionFieldsInOrder, hidingConnection)
}

export const connectionFieldsInOrder: readonly PlainField[] = ['namespaces', 'metadata', 'resources', 'operations']
export const hidingConnection: ReadonlySet<Field> = new Set<Field>(['namespaces', 'metadata'])

function* decideInSteps(
  blocks: readonly Block[],
  access: Access,
  order: readonly PlainField[],
  hides: ReadonlySet<Field>,
): Generator<number, Decision> {
  for (const field of order) {
    const block = blocks.findIndex((one) => !allows[field](one, access))
    if (block >= 0) return { allowed: false, block, name: blocks[block]?.name, field, visible: !hides.has(field) }
  }
  return yield* decideOnRules(blocks, access)
}

function* decideOnRules(blocks: readonly Block[], { rpc: body, isReply }: Access): Generator<number, Decision> {
  if (body === undefined) return { allowed: true }
  const read = new RpcBody(body)
  /** Undefined until a rule asks: most messages have none below `params`. */
  let skipsParams: boolean | undefined
  for (const [block, { rpc: rules = [], name }] of blocks.entries()) {
    // A response has no method and no tool, so a block that restricts only those does not apply.
    if (isReply && rules.every(isParamsRule)) continue
    for (const rule of rules) {
      if (isParamsRule(rule)) {
        skipsParams ??= isPreliminary(body)
        if (skipsParams) continue
      }
      if (!(yield* read.matches(rule)))
        return { allowed: false, block, name, field: 'rpcReqMatch', path: rule.path, visible: true }
    }
  }
  return { allowed: true }
}

/** A test for each field. True if the block does not have the field. */
export const allows: Record<PlainField, (block: Block, access: Access) => boolean> = {
  namespaces: ({ namespaces }, access) => namespaces === undefined || namespaces.includes(access.namespace),
  resources: ({ resources }, access) => resources === undefined || resources.includes(access.resource),
  operations: ({ operations }, access) => operations === undefined || operations.includes(access.operation),
  metadata: ({ metadata }, access) => {
    if (metadata === undefined || access.metadata === 'narrowed') return true
    return access.metadata !== 'none' && constraintAllows(metadata, access.metadata)
  },
}
