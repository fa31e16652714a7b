/**
 * A page of a namespace's connections, as the bytes of the response. Records are stored as the JSON that clients see,
 * so a page is a concatenation of stored bytes; no record is parsed.
 */

import { openText } from '../../auth/secrets.ts'
import { invalidRequest } from '../../errors.ts'
import type { Slices } from '../../fairness/slices.ts'
import { concatenate } from '../../storage/concatenated.ts'
import { readConnection } from '../../storage/connections.ts'
import { idOfKey, keyOf, prefixOf, prefixRange } from '../../storage/keys.ts'
import type { ConcatenatedValues, Store } from '../../storage/store.ts'
import { readVersion, versionText } from '../../storage/versions.ts'
import { sealCursor } from './cursor.ts'
import { type PlanWork, successor } from './id-stream.ts'
import { canonicalFilters, type ListQuery } from './list-query.ts'
import { inScope, isNarrowed, planOf, type RowScope } from './plan.ts'

/** Contract 5.2: index entries read for one page, so that no query scans a whole namespace. Past it: the page ends early, with a cursor. */
const indexEntriesExaminedMax = 20_000

export interface Page {
  readonly body: Uint8Array<ArrayBuffer>
  /** Quoted; changes whenever the page does. Undefined if the namespace changed while the page was read. */
  readonly etag: string | undefined
  /** The version of the namespace's connections to which the page belongs, if it has an ETag. */
  readonly version: string
}

interface Rows {
  readonly values: ConcatenatedValues
  /**
   * The id where the next page starts: after the last row, or, for a page that ended early at
   * `indexEntriesExaminedMax`, the position of the plan. Undefined after the last page.
   */
  readonly resumeFrom: string | undefined
}

/** An authorized request for a page, with everything that is computed from it once and can be reused. */
export type PreparedList = ReturnType<typeof prepareList>

function prepareList(cursorKey: Buffer, scope: RowScope, query: ListQuery, metadataFingerprint: string) {
  /** A cursor is bound to this text: the namespace and the filters in canonical form. */
  const binding = JSON.stringify([scope.namespace, canonicalFilters(query.filters)])
  const from = query.cursor === undefined ? '' : openText(cursorKey, query.cursor, binding)
  if (from === undefined) {
    throw invalidRequest('cursor: not valid for this namespace and these filters; start again without it')
  }
  /** Requests with the same key get the same page as long as the namespace's version is the same. */
  const cacheKey = `${query.limit} ${JSON.stringify(from)} ${binding} ${metadataFingerprint}`
  /** The storage key prefix of the namespace's connections. */
  const prefix = prefixOf('connection', scope.namespace)
  return {
    scope,
    /** Whether filters or policy restrict the rows. */
    isNarrowed: isNarrowed(scope),
    /** Whether the policy restricts the rows. */
    isConstrained: isNarrowed({ ...scope, filters: [] }),
    limit: query.limit,
    /** The lower bound of the page's ids, inclusive. */
    from,
    prefix,
    /** The lower bound of the page's keys, inclusive. */
    gte: keyOf('connection', scope.namespace, from),
    /** The end of the namespace's keys, exclusive. */
    lt: prefixRange(prefix).lt,
    binding,
    cacheKey,
    /** A hash of the cache key, for the ETag. */
    etagSuffix: Bun.SHA256.hash(cacheKey, 'base64').slice(0, 22),
  }
}

/** Prepares and reads pages of connections. */
export type ConnectionLists = ReturnType<typeof createConnectionLists>

export function createConnectionLists(store: Store, cursorKey: Buffer) {
  /** Builds a page from rows that were read at this version. Its body may share the memory of the rows. */
  function compose(list: PreparedList, { values, resumeFrom }: Rows, version: string) {
    const cursor = resumeFrom === undefined ? 'null' : `"${sealCursor(cursorKey, list.binding, resumeFrom)}"`
    const body = values.wrap('{"connections":[', `],"nextCursor":${cursor}}`)
    // The version changes with every write to the namespace. A caller that sees only some rows must not learn of writes
    // to the others, so its tag is a hash of the body.
    const tag = list.isConstrained ? Bun.SHA256.hash(body, 'base64').slice(0, 22) : btoa(version)
    return { body, etag: `"${tag}.${list.etagSuffix}"`, version }
  }

  /** Builds a page that nothing narrows from the values in its key range. */
  function unnarrowedPage(list: PreparedList, values: ConcatenatedValues, version: string) {
    const { lastKeyIfMore: last } = values
    const resumeFrom = last === undefined ? undefined : successor(idOfKey(list.prefix, last))
    return compose(list, { values, resumeFrom }, version)
  }

  return {
    /** `metadataFingerprint`: of the scope's blocks (`Caller` in authenticate.ts). Throws `invalid_request`. */
    prepare: (scope: RowScope, query: ListQuery, metadataFingerprint: string) =>
      prepareList(cursorKey, scope, query, metadataFingerprint),
    /** Reads a page from the store, in slices. Rejects as `Slices.next`. */
    async readPage(list: PreparedList, slices: Slices): Promise<Page> {
      const { namespace } = list.scope
      const versionKey = keyOf('connectionsVersion', namespace)
      if (!list.isNarrowed) {
        // Rows and version of one snapshot.
        const values = await store.concatValues(list, versionKey)
        return unnarrowedPage(list, values, versionText(values.beside))
      }
      const version = await readVersion(store, versionKey)
      const { isSettled, ...rows } = await readPlannedRows(store, list, version, slices)
      const page = compose(list, rows, version)
      // The rows are correct, but they may not be the rows of this version.
      return isSettled ? page : { ...page, etag: undefined }
    },
    unnarrowedPage,
  }
}

/** The rows that match an index plan: `limit`, or fewer after `indexEntriesExaminedMax`, perhaps none, and a cursor. */
async function readPlannedRows(
  store: Store,
  { scope, limit, from }: PreparedList,
  version: string,
  slices: Slices,
): Promise<Rows & { readonly isSettled: boolean }> {
  const { namespace } = scope
  const versionKey = keyOf('connectionsVersion', namespace)
  const work: PlanWork = { examined: 0, slices }
  const plan = planOf(store, scope, work)
  const rows: Uint8Array[] = []
  /** Whether the version has been unchanged so far, so that the index agrees with the records. */
  let isSettled = true
  const result = (resumeFrom: string | undefined) => ({ values: concatenate(rows, undefined), resumeFrom, isSettled })
  let position = from
  let pastLast = from
  for (;;) {
    // One id more than fits on the page shows whether there is a next page.
    const ids: string[] = []
    let ended = false
    while (!ended && ids.length <= limit - rows.length && work.examined < indexEntriesExaminedMax) {
      if (slices.isOver) await slices.next()
      const sought = plan(position)
      const step = sought instanceof Promise ? await sought : sought
      if (step === undefined) ended = true
      else {
        if (step.found) ids.push(step.at)
        position = step.found ? successor(step.at) : step.at
      }
    }
    const [now, ...values] = await store.getMany([versionKey, ...ids.map((id) => keyOf('connection', namespace, id))])
    // Index and records are read one after the other. If the namespace changed in between, check each record.
    isSettled = isSettled && versionText(now) === version
    for (const [index, value] of values.entries()) {
      if (value === undefined || (!isSettled && !inScope(readConnection(value), scope))) continue
      if (rows.length === limit) return result(pastLast)
      rows.push(value)
      pastLast = successor(ids[index] as string)
    }
    if (ended) return result(undefined)
    if (work.examined >= indexEntriesExaminedMax) return result(position)
  }
}
