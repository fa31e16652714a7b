/**
 * The decision: may the holder of these blocks do this? Every block must allow it, and within a block
 * every field (spec 2.2). Pure: no I/O, no clock; a block's ttl has become the token's expiry when the
 * token was minted.
 */

import type { OperationKind, ResourceType } from '../model/constraint.ts'
import type { Block } from './block.ts'
import { constraintAllows, type MetadataFacts } from './metadata.ts'
import { ruleMatches } from './rpc-match.ts'

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
      /** False when the refusal must look like absence: the namespace is not the holder's to see. */
      readonly visible: boolean
    }

/** Every block's `namespaces` come first: what is not visible is 404, whatever else is missing (contract 4). */
export function decide(blocks: readonly Block[], access: Access): Decision {
  for (const field of fields) {
    for (const [index, block] of blocks.entries()) {
      if (!allows[field](block, access)) {
        return { allowed: false, block: index, field, visible: field !== 'namespaces' }
      }
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
  rpcReqMatch: ({ rpc }, access) => {
    if (rpc === undefined || access.rpc === undefined) return true
    return rpc.every((rule) => ruleMatches(rule, access.rpc))
  },
}
