/**
 * A page of a namespace's connections, as the bytes that are answered. Records are stored as the JSON they
 * are shown as, so a page is made of their bytes without reading one.
 */

import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../errors.ts'
import { privateJson } from '../http/respond.ts'
import { indexEntriesExaminedMax, pageCacheBytesMax, pagesAskedMax } from '../limits.ts'
import { type Soon, then } from '../model/soon.ts'
import { readConnection } from '../storage/connections.ts'
import { createGenerations } from '../storage/generation.ts'
import { connectionKey, connectionsOf, idAfter, pageGenerationKey, under } from '../storage/keys.ts'
import { type Joined, joinValues, type Key, type Store } from '../storage/store.ts'
import { createCursors } from './cursor.ts'
import { afterId, type Spending } from './id-stream.ts'
import { inScope, isNarrowed, planOf, type RowScope } from './plan.ts'
import { type ListQuery, spelling } from './query.ts'

export interface Page {
  /** Bytes are lent for the time of one call; a page that is kept is a Blob, which a response does not copy. */
  readonly body: Uint8Array<ArrayBuffer> | Blob
  /** Quoted, the same as long as the page is the same bytes; undefined for a page that overtook a change. */
  readonly etag: string | undefined
  /** Of the answer that carries the page; lent too. */
  readonly headers: Headers
}

/** A page that may be asked for, with all that is the same each time. */
export interface ListRequest {
  readonly scope: RowScope
  /** To less than the whole namespace. */
  readonly isNarrowed: boolean
  /** By what the caller may see. */
  readonly isConstrained: boolean
  readonly limit: number
  /** The least id of the page. */
  readonly from: string
  /** Before the keys of the namespace's connections; */
  readonly prefix: Key
  /** the least key of the page, and the end of the namespace. */
  readonly gte: Key
  readonly lt: Key
  /** What a cursor is bound to: the namespace and the filters, in one spelling. */
  readonly binding: string
  /** Two requests with the same name get the same page, in one generation of the namespace. */
  readonly name: string
  /** The name in short, for the ETag. */
  readonly nameDigest: string
}

export interface ConnectionLists {
  /** `rowScope` is what the scope's blocks say of rows, in one spelling. Throws `invalid_request` for a cursor that is none. */
  request(scope: RowScope, query: ListQuery, rowScope: string): ListRequest
  /**
   * Gives the page to `use`, which must not await, and what that returns. A promise only for a page that filters or
   * constraints narrow, or where the store must be waited for.
   */
  page<T>(request: ListRequest, use: (page: Page) => T): Soon<T>
  /** Pages that were answered ready, and made, since the start. */
  statistics(): { readonly hits: number; readonly misses: number }
}

interface Rows {
  readonly json: Joined
  /** Where the walk goes on: past the last row or, on a page cut short, where the plan stood. Undefined at the end. */
  readonly resumeFrom: string | undefined
}

/** `cacheBytesMax` is what the ready pages that are kept may take. */
export function createConnectionLists(
  store: Store,
  cursorKey: Buffer,
  cacheBytesMax = pageCacheBytesMax,
): ConnectionLists {
  const pages = new LRUCache<string, { readonly generation: string; readonly page: Page; readonly bytes: number }>({
    maxSize: cacheBytesMax,
    sizeCalculation: ({ bytes }, key) => bytes + key.length + 256,
  })
  /**
   * The generation in which a page was last asked for. Asked for again in the same one, it is kept: the pages of
   * a walk and of a namespace in motion come once each, and would push out the rest.
   */
  const asked = new Map<string, string>()
  const lentHeaders = new Headers(privateJson)
  const headersWithoutTag = new Headers(privateJson)
  const generations = createGenerations(store, pageGenerationKey)
  const cursors = createCursors(cursorKey)

  let hits = 0
  let misses = 0

  /** The page that is kept, where it is of this generation. */
  function keptPage(name: string, generation: string): Page | undefined {
    const kept = pages.get(name)
    if (kept?.generation !== generation || generation === '') return undefined
    hits += 1
    return kept.page
  }

  function makePage<T>(request: ListRequest, generation: string, use: (page: Page) => T): Soon<T> {
    misses += 1
    const { name, nameDigest, binding } = request
    const unchanged = async () => (await generations.current(request.scope.namespace)) === generation
    return readRows(store, request, unchanged, ({ json, resumeFrom }) => {
      const cursor = resumeFrom === undefined ? 'null' : `"${cursors.seal(binding, resumeFrom)}"`
      const body = json.between('{"connections":[', `],"nextCursor":${cursor}}`)
      // A page that overtook a change is right, but it is not the page of this generation. Where the generation must be
      // waited for nobody knows, and it is taken for changed.
      if (generations.current(request.scope.namespace) !== generation) {
        return use({ body, etag: undefined, headers: headersWithoutTag })
      }
      // The generation tells of every write. Who does not see every row is not told of those that it does not see.
      const version = request.isConstrained ? Bun.SHA256.hash(body, 'base64').slice(0, 22) : btoa(generation)
      const etag = `"${version}.${nameDigest}"`
      if (asked.get(name) === generation) {
        const page = { body: new Blob([body]), etag, headers: new Headers({ ...privateJson, etag }) }
        pages.set(name, { generation, page, bytes: body.length })
        return use(page)
      }
      if (asked.size >= pagesAskedMax) asked.clear()
      asked.set(name, generation)
      lentHeaders.set('etag', etag)
      return use({ body, etag, headers: lentHeaders })
    })
  }

  return {
    statistics: () => ({ hits, misses }),
    request(scope, query, rowScope) {
      const binding = JSON.stringify([scope.namespace, spelling(query.filters)])
      const from = query.cursor === undefined ? '' : cursors.open(binding, query.cursor)
      if (from === undefined) throw invalidRequest('cursor: is not one that this list gave for these filters')
      const name = `${query.limit} ${JSON.stringify(from)} ${binding} ${rowScope}`
      const prefix = connectionsOf(scope.namespace)
      return {
        scope,
        isNarrowed: isNarrowed(scope),
        isConstrained: isNarrowed({ ...scope, filters: [] }),
        limit: query.limit,
        from,
        prefix,
        gte: connectionKey(scope.namespace, from),
        lt: under(prefix).lt,
        binding,
        name,
        nameDigest: Bun.SHA256.hash(name, 'base64').slice(0, 22),
      }
    },
    page<T>(request: ListRequest, use: (page: Page) => T) {
      return then(generations.current(request.scope.namespace), (generation): Soon<T> => {
        const kept = keptPage(request.name, generation)
        return kept === undefined ? makePage(request, generation, use) : use(kept)
      })
    },
  }
}

/** `unchanged` tells whether the namespace is still as it was when the page was asked for. */
function readRows<T>(
  store: Store,
  request: ListRequest,
  unchanged: () => Promise<boolean>,
  use: (rows: Rows) => T,
): Soon<T> {
  if (request.isNarrowed) return readPlanned(store, request, unchanged, use)
  // One snapshot: what it holds is right, whether or not the generation has moved on.
  return store.join(request, (json) => {
    const resumeFrom = json.moreAfter === undefined ? undefined : afterId(idAfter(request.prefix, json.moreAfter))
    return use({ json, resumeFrom })
  })
}

/** The rows that an index plan names. */
async function readPlanned<T>(
  store: Store,
  { scope, limit, from }: ListRequest,
  unchanged: () => Promise<boolean>,
  use: (rows: Rows) => T,
): Promise<T> {
  const { namespace } = scope
  const spending: Spending = { examined: 0, turnStarted: performance.now() }
  const plan = planOf(store, scope, spending)
  const rows: Uint8Array[] = []
  const result = (resumeFrom: string | undefined): T => use({ json: joinValues(rows, undefined), resumeFrom })
  let settled = true
  let position = from
  let pastLast = from
  for (;;) {
    // One id more than fits tells whether there is a next page.
    const ids: string[] = []
    let ended = false
    while (!ended && ids.length <= limit - rows.length && spending.examined < indexEntriesExaminedMax) {
      const step = await plan.seek(position)
      if (step === undefined) ended = true
      else {
        if (step.found) ids.push(step.at)
        position = step.found ? afterId(step.at) : step.at
      }
    }
    const values = await store.getMany(ids.map((id) => connectionKey(namespace, id)))
    // Index and records were read one after the other: if the namespace changed between, look at each record.
    settled = settled && (await unchanged())
    for (const [index, value] of values.entries()) {
      if (value === undefined || (!settled && !inScope(readConnection(value), scope))) continue
      if (rows.length === limit) return result(pastLast)
      rows.push(value)
      pastLast = afterId(ids[index] as string)
    }
    if (ended) return result(undefined)
    if (spending.examined >= indexEntriesExaminedMax) return result(position)
  }
}
