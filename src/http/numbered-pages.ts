/** Lists that are read by the number of a page (contract, 9.2, 10.1). */

import { readInteger } from './query.ts'

export type PageNumber = Readonly<ReturnType<typeof readPageNumber>>

/** Reads `page` and `pageSize`. Throws `invalid_request`. */
export function readPageNumber(
  query: ReadonlyMap<string, string>,
  { sizeDefault, sizeMax }: { readonly sizeDefault: number; readonly sizeMax: number },
) {
  return {
    /** From 1. */
    page: readInteger(query, 'page', { least: 1, most: Number.MAX_SAFE_INTEGER, otherwise: 1 }),
    pageSize: readInteger(query, 'pageSize', { least: 1, most: sizeMax, otherwise: sizeDefault }),
  }
}

export function paginationOf({ page, pageSize }: PageNumber, totalCount: number) {
  return { currentPage: page, pageSize, totalPages: Math.ceil(totalCount / pageSize), totalCount }
}

/** The items of the page; none past the end. */
export function pageOf<T>(items: readonly T[], { page, pageSize }: PageNumber): readonly T[] {
  return items.slice((page - 1) * pageSize, page * pageSize)
}

/** The names in `fields=a,b`; undefined for all. */
export function fieldsIn(query: ReadonlyMap<string, string>): ReadonlySet<string> | undefined {
  const fields = query.get('fields')
  return fields === undefined ? undefined : new Set(fields.split(','))
}

/** These members of an item; names that it does not have are passed over. */
export function withFields<T extends object>(item: T, fields: ReadonlySet<string> | undefined): Partial<T> {
  if (fields === undefined) return item
  return Object.fromEntries(Object.entries(item).filter(([name]) => fields.has(name))) as Partial<T>
}
