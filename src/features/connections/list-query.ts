/** The query of `GET /connect/{namespace}`: filters, limit and cursor (specification 4.2; contract, 5.2 to 5.4). */

import { invalidRequest } from '../../errors.ts'
import { readInteger, readQuery, unknownParameter } from '../../http/query.ts'
import { pageItemsDefault, pageItemsMax } from '../../limits.ts'

/** Ours: filters of a list; they are intersected, each with its own cursor in the store. Past it: 400. */
export const listFiltersMax = 32

export interface ListQuery {
  /** Connections per page, from 1 to `pageItemsMax`. */
  readonly limit: number
  readonly filters: readonly Filter[]
  /** Undefined for the first page. An empty string counts as a cursor, which is invalid. */
  readonly cursor: string | undefined
}

export type Filter =
  | { readonly field: 'name' | 'mcpUrl'; readonly value: string }
  | { readonly field: 'metadata'; readonly key: string; readonly value: string }

/** Throws `invalid_request` with the parameter's name. */
export function readListQuery(url: string): ListQuery {
  const query = readQuery(url)
  const limit = readInteger(query, 'limit', { least: 1, most: pageItemsMax, otherwise: pageItemsDefault })
  const filters: Filter[] = []
  for (const [name, value] of query) {
    const key = metadataKey(name)
    if (key !== undefined) {
      if (key === '') throw invalidRequest(`${name}: must name a metadata key`)
      if (filters.some((filter) => filter.field === 'metadata' && filter.key === key)) {
        throw invalidRequest(`metadata.${key}: is given twice`)
      }
      filters.push({ field: 'metadata', key, value })
    } else if (name === 'name' || name === 'mcpUrl') filters.push({ field: name, value })
    else if (name !== 'limit' && name !== 'cursor')
      throw unknownParameter(name, 'limit, cursor, name, mcpUrl and metadata.{key}')
  }
  if (filters.length > listFiltersMax) throw invalidRequest(`the query has more than ${listFiltersMax} filters`)
  return { limit, filters, cursor: query.get('cursor') }
}

/** The filters as text, equal for equal filters regardless of their order and notation. */
export function canonicalFilters(filters: readonly Filter[]): string {
  const partsOf = (filter: Filter) => [filter.field, filter.value, ...(filter.field === 'metadata' ? [filter.key] : [])]
  const parts = filters.map((filter) => JSON.stringify(partsOf(filter)))
  return parts.sort().join()
}

/** The key in `metadata.team` or `metadata[team]`, which are equivalent. A key may contain dots. */
function metadataKey(name: string): string | undefined {
  if (name.startsWith('metadata.')) return name.slice('metadata.'.length)
  if (name.startsWith('metadata[') && name.endsWith(']')) return name.slice('metadata['.length, -1)
  return undefined
}
