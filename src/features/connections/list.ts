/**
 * A page of a namespace's connections, as the bytes that are answered. Records are stored as the JSON they
 * are shown as, so a page is made of their bytes without reading one.
 */

import { invalidRequest } from '../../errors.ts'
import { indexEntriesExaminedMax } from '../../limits.ts'
import { readConnection } from '../../storage/connections.ts'
import { connectionKey, connectionsOf, connectionsVersionKey, idOfKey, prefixRange } from '../../storage/keys.ts'
import { type ConcatenatedValues, concatenate, type Key, type Store } from '../../storage/store.ts'
import { readVersion } from '../../storage/versions.ts'
import { createCursors } from './cursor.ts'
import { successor, type WorkBudget } from './id-stream.ts'
import { inScope, isNarrowed, planOf, type RowScope } from './plan.ts'
import { canonicalFilters, type ListQuery } from './query.ts'

export interface Page {
  readonly body: Uint8Array<ArrayBuffer>
  /** Quoted, the same as long as the page is the same bytes; undefined for a page that overtook a change. */
  readonly etag: string | undefined
  /** Of the namespace's connections, where the page has an ETag. */
  readonly version: string
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
  /** The first bytes of the keys of the namespace's connections. */
  readonly prefix: Key
  /** The least key of the page. */
  readonly gte: Key
  /** The end of the namespace's keys. */
  readonly lt: Key
  /** What a cursor is bound to: the namespace and the filters, in one spelling. */
  readonly binding: string
  /** Two requests with the same key get the same page, in one version of the namespace. */
  readonly cacheKey: string
  /** The cache key in short, for the ETag. */
  readonly etagSuffix: string
}

export interface ConnectionLists {
  /**
   * `metadataFingerprint` is what the scope's blocks say of metadata. Throws `invalid_request` for a cursor that is
   * none.
   */
  request(scope: RowScope, query: ListQuery, metadataFingerprint: string): ListRequest
  page(request: ListRequest): Promise<Page>
  /** The page of rows that were read while the namespace had this version. Its body stands where the rows do. */
  compose(request: ListRequest, rows: Rows, version: string): Page
  /** The rows of a page that nothing narrows, from the values of its range. */
  unnarrowedRows(request: ListRequest, values: ConcatenatedValues): Rows
}

export interface Rows {
  readonly values: ConcatenatedValues
  /** Where the walk goes on: past the last row or, on a page cut short, where the plan stood. Undefined at the end. */
  readonly resumeFrom: string | undefined
}

export function createConnectionLists(store: Store, cursorKey: Buffer): ConnectionLists {
  const cursors = createCursors(cursorKey)
  const versionOf = (namespace: string) => readVersion(store, connectionsVersionKey(namespace))

  function bodyOf({ binding }: ListRequest, { values, resumeFrom }: Rows): Uint8Array<ArrayBuffer> {
    const cursor = resumeFrom === undefined ? 'null' : `"${cursors.seal(binding, resumeFrom)}"`
    return values.wrap('{"connections":[', `],"nextCursor":${cursor}}`)
  }

  function compose(request: ListRequest, rows: Rows, version: string): Page {
    const body = bodyOf(request, rows)
    // The version tells of every write. Who does not see every row is not told of those that it does not see.
    const tag = request.isConstrained ? Bun.SHA256.hash(body, 'base64').slice(0, 22) : btoa(version)
    return { body, etag: `"${tag}.${request.etagSuffix}"`, version }
  }

  return {
    request(scope, query, metadataFingerprint) {
      const binding = JSON.stringify([scope.namespace, canonicalFilters(query.filters)])
      const from = query.cursor === undefined ? '' : cursors.open(binding, query.cursor)
      if (from === undefined) {
        throw invalidRequest('cursor: not valid for this namespace and these filters; start again without it')
      }
      const cacheKey = `${query.limit} ${JSON.stringify(from)} ${binding} ${metadataFingerprint}`
      const prefix = connectionsOf(scope.namespace)
      return {
        scope,
        isNarrowed: isNarrowed(scope),
        isConstrained: isNarrowed({ ...scope, filters: [] }),
        limit: query.limit,
        from,
        prefix,
        gte: connectionKey(scope.namespace, from),
        lt: prefixRange(prefix).lt,
        binding,
        cacheKey,
        etagSuffix: Bun.SHA256.hash(cacheKey, 'base64').slice(0, 22),
      }
    },
    async page(request) {
      const { namespace } = request.scope
      const version = await versionOf(namespace)
      const isUnchanged = async () => (await versionOf(namespace)) === version
      // Rows that nothing narrows are one snapshot: what it holds is right, whether or not the version has moved on.
      const rows = request.isNarrowed
        ? await readPlannedRows(store, request, isUnchanged)
        : unnarrowedRows(request, await store.concatValues(request))
      if (await isUnchanged()) return compose(request, rows, version)
      // A page that overtook a change is right, but it is not the page of this version.
      return { body: bodyOf(request, rows), etag: undefined, version }
    },
    compose,
    unnarrowedRows,
  }
}

function unnarrowedRows({ prefix }: ListRequest, values: ConcatenatedValues): Rows {
  const { lastKeyIfMore: last } = values
  return { values, resumeFrom: last === undefined ? undefined : successor(idOfKey(prefix, last)) }
}

/** The rows that an index plan names. */
async function readPlannedRows(
  store: Store,
  { scope, limit, from }: ListRequest,
  isUnchanged: () => Promise<boolean>,
): Promise<Rows> {
  const { namespace } = scope
  const spending: WorkBudget = { examined: 0, turnStarted: performance.now() }
  const plan = planOf(store, scope, spending)
  const rows: Uint8Array[] = []
  const result = (resumeFrom: string | undefined) => ({ values: concatenate(rows, undefined), resumeFrom })
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
        position = step.found ? successor(step.at) : step.at
      }
    }
    const values = await store.getMany(ids.map((id) => connectionKey(namespace, id)))
    // Index and records were read one after the other: if the namespace changed between, look at each record.
    settled = settled && (await isUnchanged())
    for (const [index, value] of values.entries()) {
      if (value === undefined || (!settled && !inScope(readConnection(value), scope))) continue
      if (rows.length === limit) return result(pastLast)
      rows.push(value)
      pastLast = successor(ids[index] as string)
    }
    if (ended) return result(undefined)
    if (spending.examined >= indexEntriesExaminedMax) return result(position)
  }
}
