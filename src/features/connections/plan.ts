/**
 * Turns filters and constraints into an index plan. A query's filters are ANDed; each block's `metadata` is an OR of
 * ANDs, and the blocks are ANDed (specification 2.2, 4.2). The policy is part of the query, so rows that the caller may
 * not see are never fetched.
 */

import type { Connection } from '../../model/connection.ts'
import { isConnectionId } from '../../model/names.ts'
import type { Block, MetadataSet } from '../../policy/block.ts'
import { connectionIdFact, constraintAllows, filterAllows } from '../../policy/metadata.ts'
import { parseForeign } from '../../schema/json.ts'
import { termDigest, termEntries } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { allOf, anyOf, type IdStream, indexStream, type PlanWork, singleStream } from './id-stream.ts'
import type { Filter } from './list-query.ts'

/** Which rows a list may contain: those of the namespace that match all filters and all blocks. */
export interface RowScope {
  readonly namespace: string
  readonly filters: readonly Filter[]
  readonly blocks: readonly Block[]
}

/** Whether filters or metadata constraints exclude any row of the namespace. */
export function isNarrowed({ filters, blocks }: RowScope): boolean {
  return filters.length > 0 || metadataOf(blocks).length > 0
}

/** The ids of a scope for which `isNarrowed` is true. */
export function planOf(store: Pick<Store, 'keys' | 'isRemote'>, scope: RowScope, work: PlanWork): IdStream {
  const term = (digest: Uint8Array) => indexStream(store, termEntries(scope.namespace, digest), work)
  const parts = [
    ...scope.filters.map((filter) => anyOf(filterTerms(filter).map(term))),
    ...metadataOf(scope.blocks).map((sets) =>
      anyOf(sets.map((set) => allOf(set.map((pair) => pairStream(pair, term))))),
    ),
  ]
  return allOf(parts)
}

/** Whether a record is in the scope. For records that changed while a page was read, and for tests of the plan. */
export function inScope(connection: Connection, { filters, blocks }: Pick<RowScope, 'filters' | 'blocks'>): boolean {
  const matches = (filter: Filter) =>
    filter.field === 'metadata'
      ? filterAllows(connection, filter.key, filter.value)
      : connection[filter.field] === filter.value
  return filters.every(matches) && metadataOf(blocks).every((sets) => constraintAllows(sets, connection))
}

function metadataOf(blocks: readonly Block[]): (readonly MetadataSet[])[] {
  return blocks.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata]))
}

/** `connectionId` is not in the index: it names the record itself. */
function pairStream([key, value]: readonly [string, string], term: (digest: Uint8Array) => IdStream): IdStream {
  if (key !== connectionIdFact) return term(termDigest('string', key, value))
  return isConnectionId(value) ? singleStream(value) : anyOf([])
}

/** A filter matches a string, or any other value by its JSON text; so `5` matches the string and the number. */
function filterTerms(filter: Filter): Uint8Array[] {
  if (filter.field !== 'metadata') return [termDigest(filter.field, '', filter.value)]
  const strings = termDigest('string', filter.key, filter.value)
  return isJsonText(filter.value) ? [strings, termDigest('json', filter.key, filter.value)] : [strings]
}

/** True for the JSON text of a number, boolean, null, list or object, spelled as `JSON.stringify` spells it. */
function isJsonText(text: string): boolean {
  if (!/^[-0-9tfn[{]/.test(text)) return false
  try {
    return JSON.stringify(parseForeign(text)) === text
  } catch {
    return false
  }
}
