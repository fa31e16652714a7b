/** Lists that are read by the number of a page, and flags in queries (door contract, 2.1, 2.3, 3.1). */

import { invalidRequest } from '../errors.ts'

export interface PageNumber {
  /** From 1. */
  readonly page: number
  readonly pageSize: number
}

/** Reads `page` and `pageSize`. Throws `invalid_request`. */
export function readPageNumber(
  query: ReadonlyMap<string, string>,
  { sizeDefault, sizeMax }: { readonly sizeDefault: number; readonly sizeMax: number },
): PageNumber {
  return {
    page: readInteger(query, 'page', { least: 1, most: Number.MAX_SAFE_INTEGER, otherwise: 1 }),
    pageSize: readInteger(query, 'pageSize', { least: 1, most: sizeMax, otherwise: sizeDefault }),
  }
}

/** A number in plain decimal digits. Throws `invalid_request`. */
export function readInteger(
  query: ReadonlyMap<string, string>,
  name: string,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  const text = query.get(name)
  if (text === undefined) return otherwise
  const number = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`
  throw invalidRequest(`${name}: must be ${range}, in decimal digits`)
}

/** Throws `invalid_request`. Undefined if it is not given. */
export function readFlag(query: ReadonlyMap<string, string>, name: string): boolean | undefined {
  const text = query.get(name)
  if (text === undefined) return undefined
  if (text === '1' || text === 'true') return true
  if (text === '0' || text === 'false') return false
  throw invalidRequest(`${name}: must be 0, 1, true or false`)
}

/** What a response says of its page. */
export function paginationOf({ page, pageSize }: PageNumber, totalCount: number) {
  return { currentPage: page, pageSize, totalPages: Math.ceil(totalCount / pageSize), totalCount }
}

/** The items of the page; none past the end. */
export function pageOf<T>(items: readonly T[], { page, pageSize }: PageNumber): readonly T[] {
  return items.slice((page - 1) * pageSize, page * pageSize)
}

/** The wanted members of an item, by `fields=a,b`; names that it does not have are passed over. */
export function withFields<T extends object>(item: T, fields: string | undefined): Partial<T> {
  if (fields === undefined) return item
  const wanted = new Set(fields.split(','))
  return Object.fromEntries(Object.entries(item).filter(([name]) => wanted.has(name))) as Partial<T>
}
