/**
 * A page of a namespace's connections, as the bytes that are answered. Records are stored as the JSON they
 * are shown as, so a page is made of their bytes without reading one.
 */

import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { indexEntriesExaminedMax, pageCacheBytesMax } from '../limits.ts'
import { readConnection } from '../storage/connections.ts'
import { connectionKey, connectionsOf, idAfter, pageGenerationKey, under } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { openCursor, sealCursor } from './cursor.ts'
import { afterId, type Spending } from './id-stream.ts'
import { inScope, planOf, type RowScope } from './plan.ts'
import { type ListQuery, spelling } from './query.ts'

export interface Page {
  readonly body: Uint8Array
  /** Quoted; the same as long as the page would be the same bytes. */
  readonly etag: string
}

export interface PageRequest {
  readonly scope: RowScope
  readonly query: ListQuery
  /** What the caller's constraints say of rows, in one spelling. */
  readonly rowScope: string
}

export interface ConnectionLists {
  /** The page, or 'bad_cursor'. */
  page(request: PageRequest): Promise<Page | 'bad_cursor'>
}

interface Rows {
  /** The records' JSON, joined by commas. */
  readonly json: Uint8Array
  /** Where the walk goes on: past the last row or, on a page cut short, where the plan stood. Undefined at the end. */
  readonly resumeFrom: string | undefined
  /** Made from one state of the namespace. */
  readonly settled: boolean
}

const comma = 0x2c
const opening = Buffer.from('{"connections":[')

export function createConnectionLists(store: Store, cursorKey: Buffer): ConnectionLists {
  const pages = new LRUCache<string, Page>({
    maxSize: pageCacheBytesMax,
    sizeCalculation: ({ body }, key) => body.length + key.length + 256,
  })

  return {
    async page({ scope, query, rowScope }) {
      const { namespace } = scope
      const stored = await store.get(pageGenerationKey(namespace))
      const generation = stored === undefined ? '' : Buffer.from(stored).toString('base64url')
      const binding = JSON.stringify([namespace, spelling(query.filters)])
      const name = `${generation} ${query.limit} ${query.cursor === undefined ? '-' : `=${query.cursor}`} ${binding} ${rowScope}`
      const known = pages.get(name)
      if (known !== undefined) return known

      const from = query.cursor === undefined ? '' : openCursor(cursorKey, binding, query.cursor)
      if (from === undefined) return 'bad_cursor'
      const rows = await readRows(store, scope, { limit: query.limit, from, generation: stored })
      const page = {
        body: bodyOf(rows, cursorKey, binding),
        etag: `"${createHash('sha256').update(name).digest('base64url').slice(0, 22)}"`,
      }
      // A page that overtook a change is right, but it is not the page of this generation.
      if (rows.settled) pages.set(name, page)
      return page
    },
  }
}

function bodyOf({ json, resumeFrom }: Rows, cursorKey: Buffer, binding: string): Uint8Array {
  const cursor = resumeFrom === undefined ? 'null' : `"${sealCursor(cursorKey, binding, resumeFrom)}"`
  const closing = `],"nextCursor":${cursor}}`
  const body = Buffer.allocUnsafeSlow(opening.length + json.length + closing.length)
  body.set(opening)
  body.set(json, opening.length)
  body.write(closing, opening.length + json.length, 'latin1')
  return body
}

interface Walk {
  readonly limit: number
  /** The least id of the page. */
  readonly from: string
  /** The namespace's generation when the walk began. */
  readonly generation: Uint8Array | undefined
}

async function readRows(store: Store, scope: RowScope, { limit, from, generation }: Walk): Promise<Rows> {
  const { namespace } = scope
  const spending: Spending = { examined: 0, turnStarted: performance.now() }
  const plan = planOf(store, scope, spending)
  const unchanged = async () => sameGeneration(generation, await store.get(pageGenerationKey(namespace)))

  if (plan === undefined) {
    const prefix = connectionsOf(namespace)
    const range = { gte: connectionKey(namespace, from), lt: under(prefix).lt, limit }
    const { bytes, last, more } = await store.join(range, comma)
    const resumeFrom = more && last !== undefined ? afterId(idAfter(prefix, last)) : undefined
    return { json: bytes, resumeFrom, settled: await unchanged() }
  }

  const rows: Uint8Array[] = []
  const result = (resumeFrom: string | undefined, settled: boolean): Rows => {
    const between = Buffer.of(comma)
    const json = Buffer.concat(rows.flatMap((row, index) => (index === 0 ? [row] : [between, row])))
    return { json, resumeFrom, settled }
  }
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
      if (rows.length === limit) return result(pastLast, settled)
      rows.push(value)
      pastLast = afterId(ids[index] as string)
    }
    if (ended) return result(undefined, settled)
    if (spending.examined >= indexEntriesExaminedMax) return result(position, settled)
  }
}

function sameGeneration(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0
}
