/** Reads everything in a database, in one snapshot and without stopping at damage: for verify, exports and copies. */

import { postgresEntriesPerStatement, scannedPerRead } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { directoryIndexKinds, prefixOf, prefixRange, stagedKey } from '../keys.ts'
import type { Scan, ScanVisitor } from '../lmdb/scan.ts'
import { isOf, stagedNamespaces } from '../staged.ts'
import { type Entry, type Key, StoreError } from '../store.ts'
import type { Run } from './database-client.ts'
import { isIntact, type Row } from './records.ts'
import type { PostgresStore } from './store.ts'
import { insertEntries } from './write.ts'

const snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
const columns = 'SELECT key, value, checksum FROM postern_records'

/** Passes all rows of a query to `take`, a batch at a time. */
async function fetchAll(run: Run, query: string, take: (rows: readonly Row[]) => void | Promise<void>): Promise<void> {
  await run(`DECLARE scanned NO SCROLL CURSOR FOR ${query}`)
  for (;;) {
    const rows = await run<Row>(`FETCH ${scannedPerRead} FROM scanned`)
    if (rows.length === 0) break
    await take(rows)
  }
  await run('CLOSE scanned')
}

/** As `scanStore` does it for a folder: single records first, then connections and index entries. */
export function scanDatabase(database: PostgresStore, visitor: ScanVisitor): Promise<void> {
  return database.transaction(snapshot, (run) => scanWith(run, visitor))
}

/** The same within a transaction. */
async function scanWith(run: Run, { entry, damaged }: ScanVisitor): Promise<void> {
  const [note] = await run<Row>(`${columns} WHERE key = $1`, [asBuffer(stagedKey)])
  const ahead = stagedNamespaces(note?.value)
  const take = (rows: readonly Row[]) => {
    for (const row of rows) {
      if (!isIntact(row)) damaged(row.key)
      else if (!isOf(ahead, row.key)) entry({ key: row.key, value: row.value })
    }
  }
  const within = (prefix: Key) => {
    const { gte, lt } = prefixRange(prefix)
    return `key >= ${bytesOf(gte)} AND key < ${bytesOf(lt)}`
  }
  const [those, index] = [within(prefixOf('connection')), within(prefixOf('indexEntry'))]
  for (const where of [`NOT (${those}) AND NOT (${index})`, those, index]) {
    await fetchAll(run, `${columns} WHERE ${where} ORDER BY key`, take)
  }
}

/** Passes all entries to `take`, in key order. Throws StoreError `damaged`. */
export function readAll(
  database: PostgresStore,
  take: (entries: readonly Entry[]) => void | Promise<void>,
): Promise<void> {
  return database.transaction(snapshot, (run) => readAllWith(run, take))
}

/** The same within a transaction. */
export function readAllWith(run: Run, take: (entries: readonly Entry[]) => void | Promise<void>): Promise<void> {
  return fetchAll(run, `${columns} ORDER BY key`, (rows) => {
    if (!rows.every(isIntact)) throw new StoreError('damaged', 'a record is damaged: run `postern verify`')
    return take(rows)
  })
}

/** The access of a repair to a store that nobody else writes to meanwhile. */
interface Repair {
  readonly scan: Scan
  /** Replaces all index entries. `more` are single entries written with them, those of the directory's indexes too. */
  replaceIndex(entries: readonly Entry[], more: readonly Entry[]): Promise<void>
}

/**
 * Looks and repairs in one transaction: commits of replicas must not come between, or the new index would be without
 * them. They may read meanwhile, and writers wait.
 */
export function repairDatabase<T>(database: PostgresStore, work: (repair: Repair) => Promise<T>): Promise<T> {
  return database.transaction('BEGIN', async (run) => {
    await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
    return work({
      scan: (visitor) => scanWith(run, visitor),
      async replaceIndex(entries, more) {
        for (const { gte, lt } of [prefixOf('indexEntry'), ...directoryIndexKinds].map(prefixRange)) {
          await run(`DELETE FROM postern_records WHERE key >= ${bytesOf(gte)} AND key < ${bytesOf(lt)}`)
        }
        for (let at = 0; at < entries.length; at += postgresEntriesPerStatement) {
          await insertEntries(run, entries.slice(at, at + postgresEntriesPerStatement))
        }
        await insertEntries(run, more)
      },
    })
  })
}

/** A literal: a cursor takes no parameters from every client. */
function bytesOf(key: Key): string {
  return `'\\x${asBuffer(key).toString('hex')}'::bytea`
}
