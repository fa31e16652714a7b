/** The parameters of a list, by themselves. */

import { expect, test } from 'bun:test'
import {
  canonicalFilters,
  type Filter,
  listFiltersMax,
  readListQuery,
} from '../../../src/features/connections/list-query.ts'
import { pageItemsDefault, pageItemsMax } from '../../../src/limits.ts'

const read = (query: string) => readListQuery(`http://a/connect/acme${query}`)
const filter = (key: string, value: string): Filter => ({ field: 'metadata', key, value })

test('a list has its default length, no filters and no cursor', () => {
  expect(read('')).toEqual({ limit: pageItemsDefault, filters: [], cursor: undefined })
  expect(read('?cursor=').cursor).toBe('')
})

test('filters come in their order, in either notation', () => {
  expect(read('?name=a&metadata.team=x&mcpUrl=u&metadata[env]=y&metadata.a.b=&metadata[c.d]=z').filters).toEqual([
    { field: 'name', value: 'a' },
    filter('team', 'x'),
    { field: 'mcpUrl', value: 'u' },
    filter('env', 'y'),
    filter('a.b', ''),
    filter('c.d', 'z'),
  ])
})

test('a page has from one item to the most', () => {
  for (const limit of [1, 9, 10, pageItemsMax]) expect(read(`?limit=${limit}`).limit).toBe(limit)
  for (const limit of ['0', '-1', '01', '1.5', '1e1', '', 'x', ' 1', String(pageItemsMax + 1), '999', '1000'])
    expect(() => read(`?limit=${limit}`), limit).toThrow(`limit: must be a whole number from 1 to ${pageItemsMax}`)
})

test('what is no parameter, or one twice, is refused', () => {
  const rows: [query: string, message: string][] = [
    ['?metadata.=x', 'metadata.: must name a metadata key'],
    ['?metadata[]=x', 'metadata[]: must name a metadata key'],
    ['?metadata.a=x&metadata[a]=y', 'metadata.a: is given twice'],
    ['?metadata[a=x', 'metadata[a: unknown parameter; it takes limit, cursor, name, mcpUrl and metadata.{key}'],
    ['?metadata=x', 'metadata: unknown parameter'],
    ['?xmetadata.a=x', 'xmetadata.a: unknown parameter'],
    ['?Name=x', 'Name: unknown parameter'],
  ]
  for (const [query, message] of rows) expect(() => read(query)).toThrow(message)
})

test('a list has so many filters', () => {
  const filters = (count: number) => `?${Array.from({ length: count }, (_, i) => `metadata.k${i}=v`).join('&')}`
  expect(read(filters(listFiltersMax)).filters).toHaveLength(listFiltersMax)
  expect(() => read(filters(listFiltersMax + 1))).toThrow(`the query has more than ${listFiltersMax} filters`)
})

test('equal filters are the same text, and no others are', () => {
  const name: Filter = { field: 'name', value: 'a' }
  expect(canonicalFilters([name, filter('k', 'v')])).toBe(canonicalFilters([filter('k', 'v'), name]))
  const others = [
    [],
    [name],
    [{ field: 'mcpUrl', value: 'a' } as const],
    [filter('a', 'b')],
    [filter('b', 'a')],
    [filter('a', 'b'), filter('b', 'a')],
    [filter('name', 'a')],
  ]
  expect(new Set(others.map(canonicalFilters)).size).toBe(others.length)
})
