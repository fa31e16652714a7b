/** A list of any length: it holds the pages around what is looked at, and the cursors by which it reads the others. */

import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Pagination } from '../model/organization.ts'
import { address, parametersOf } from './address.ts'
import { eventsSoFar } from './events.ts'
import { ask, session } from './interface.ts'

export interface Page<T> {
  readonly items: readonly T[]
  /** Of the next page; null: there is none. */
  readonly nextCursor: string | null
}
/** `cursor`: null for the first page. */
type Read<T> = (cursor: string | null, stop: AbortSignal) => Promise<Page<T>>

/** Rows that a list keeps in memory. Past it: the pages that are farthest from what is looked at are let go. */
const rowsHeldMax = 1000

export class Pages<T> {
  /** Rows that are known to be there, whether they are held or not. */
  length = 0
  /** Whether the last page has been read. */
  isWhole = false
  /** Why no more of it could be read. */
  failure: Error | undefined
  /** Whether events of its rows may have been missed. */
  hasGap = false
  /** Events that had arrived when the reading of its first page began last. */
  eventsBefore = 0
  /** Changes whenever anything of the list does. */
  readonly version = signal(0)
  readonly #read: Read<T>
  /** The last of them has not been read, unless the list is whole. */
  #known: { readonly cursor: string | null; readonly first: number }[] = [{ cursor: null, first: 0 }]
  readonly #held = new Map<number, readonly T[]>()
  #reading: { readonly page: number; readonly stop: AbortController } | undefined

  constructor(read: Read<T>) {
    this.#read = read
  }

  /** Whether the first page has been read. */
  get isBegun(): boolean {
    return this.isWhole || this.#known.length > 1
  }

  get isLoading(): boolean {
    return !this.isBegun && this.failure === undefined
  }

  get isEmpty(): boolean {
    return this.isWhole && this.length === 0
  }

  /** Why nothing of it could be read. */
  get error(): Error | undefined {
    return this.isBegun ? undefined : this.failure
  }

  /** Undefined while its page is not held. */
  at(index: number): T | undefined {
    const page = this.#pageOf(index)
    return this.#held.get(page)?.[index - this.#first(page)]
  }

  /** Begins to read the first page of these rows that is not held. Each page that arrives changes `version`. */
  want(first: number, last: number): void {
    if (this.failure !== undefined) return
    const [from, to] = [this.#pageOf(first), this.#pageOf(last)]
    let page = from
    while (page <= to && this.#held.has(page)) page += 1
    if (page > to || page === this.#reading?.page) return
    this.rest()
    const stop = new AbortController()
    this.#reading = { page, stop }
    void this.#take(page, stop.signal)
  }

  /** Stops reading. */
  rest(): void {
    this.#reading?.stop.abort()
    this.#reading = undefined
  }

  /** Changes rows that are held. */
  change(to: (item: T) => T): void {
    for (const [page, items] of this.#held) this.#held.set(page, items.map(to))
    this.version.value += 1
  }

  /** All of its rows; undefined unless each of them is held. */
  get all(): readonly T[] | undefined {
    const held = [...this.#held.values()].flat()
    return this.isWhole && held.length === this.length ? held : undefined
  }

  miss(): void {
    if (this.hasGap) return
    this.hasGap = true
    this.version.value += 1
  }

  /** Reads the list again from its beginning, or goes on after an error. */
  readonly again = (): void => {
    if (this.failure === undefined) {
      this.#known = [{ cursor: null, first: 0 }]
      this.#held.clear()
      this.length = 0
      this.isWhole = false
      this.hasGap = false
    }
    this.failure = undefined
    this.rest()
    this.want(0, 0)
    this.version.value += 1
  }

  async #take(page: number, stop: AbortSignal): Promise<void> {
    if (page === 0) this.eventsBefore = eventsSoFar()
    try {
      const { items, nextCursor } = await this.#read(this.#known[page]?.cursor ?? null, stop)
      if (stop.aborted) return
      const end = this.#known[page + 1]?.first
      // A page that is read again keeps its length: what is below it must not move.
      this.#held.set(page, end === undefined ? items : items.slice(0, end - this.#first(page)))
      if (end === undefined && !this.isWhole) {
        this.length += items.length
        if (nextCursor === null) this.isWhole = true
        else this.#known.push({ cursor: nextCursor, first: this.length })
      }
      this.#letGo(page)
    } catch (error) {
      if (stop.aborted) return
      this.failure = error as Error
    }
    this.#reading = undefined
    this.version.value += 1
  }

  #letGo(near: number): void {
    let rows = 0
    const nearest = [...this.#held].sort(([a], [b]) => Math.abs(a - near) - Math.abs(b - near))
    for (const [page, items] of nearest) {
      rows += items.length
      if (rows > rowsHeldMax) this.#held.delete(page)
    }
  }

  #first = (page: number) => this.#known[page]?.first ?? 0
  #pageOf = (index: number) => this.#known.findLastIndex(({ first }) => first <= index)
}

/** Lists that were looked at last, for somebody who comes back to them. */
const left = new Map<string, Pages<unknown>>()
/** Past it: the console forgets the oldest list, and reads it again when somebody comes back to it. */
const leftMax = 8

/** `name`: of the list, with its filters; null: read nothing yet. If the browser goes back, a room finds its list. */
export function usePages<T>(name: string | null, read: Read<T>): Pages<T> {
  const pages = useMemo(() => {
    if (name === null) return new Pages<T>(read)
    // Nobody sees the list of another session.
    const key = `${session.value?.csrf} ${name}`
    const before = address.peek().isBack ? left.get(key) : undefined
    const pages = (before as Pages<T> | undefined) ?? new Pages<T>(read)
    left.delete(key)
    left.set(key, pages as Pages<unknown>)
    for (const old of left.keys()) if (left.size > leftMax) left.delete(old)
    return pages
  }, [name])
  useEffect(() => {
    if (name !== null && !pages.isBegun) pages.want(0, 0)
    return () => pages.rest()
  }, [pages])
  // A room that uses it is painted again with each change.
  pages.version.value
  return pages
}

type Body = Readonly<Record<string, unknown>>

/** Reads a list whose pages have cursors. `member`: the list in their body. `path` must have a query. */
export function listed<T>(member: string, path: string): Read<T> {
  return async (cursor, signal) => {
    const body = await ask<Body & Pick<Page<T>, 'nextCursor'>>('GET', `${path}${after(cursor)}`, { signal })
    return { items: body[member] as T[], nextCursor: body.nextCursor }
  }
}

/** Reads a list whose pages have numbers, which stand for cursors. */
export function numbered<T>(member: string, pathOf: (page: string) => string): Read<T> {
  return async (cursor, signal) => {
    const body = await ask<Body & { pagination: Pagination }>('GET', pathOf(cursor ?? '1'), { signal })
    const { currentPage, totalPages } = body.pagination
    return { items: body[member] as T[], nextCursor: currentPage < totalPages ? String(currentPage + 1) : null }
  }
}

/** The parameter that reads on behind a cursor. */
export const after = (cursor: string | null) => parametersOf({ cursor: cursor ?? '' })
