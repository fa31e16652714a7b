/** Reads everything in a database, in one snapshot and without stopping at damage: for verify, exports and copies. */

import { postgresEntriesPerStatement, scannedPerRead } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { directoryIndexKinds, prefixOf, prefixRange, stagedKey } from '../keys.ts'
import type { Repair, Scan, Scanned } from '../lmdb/scan.ts'
import { piecesOf } from '../pieces.ts'
import { isOf, stagedNamespaces } from '../staged.ts'
import type { Key } from '../store.ts'
import type { Run } from './database-client.ts'
import { isIntact, type Row } from './records.ts'
import type { PostgresStore } from './store.ts'
import { insertEntries } from './write.ts'

const snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
const columns = 'SELECT key, value, checksum FROM postern_records'

/** As `scanStore` does it for a folder: single records first, then connections and index entries. */
export function scanDatabase(database: PostgresStore): Scan {
  return (take) => database.transaction(snapshot, (run) => scanWith(run)(take))
}

/** The same within a transaction. */
export function scanWith(run: Run): Scan {
  return async (take) => {
    const [note] = await run<Row>(`${columns} WHERE key = $1`, [asBuffer(stagedKey)])
    const ahead = stagedNamespaces(note?.value)
    const scanned = (row: Row): Scanned[] => {
      if (!isIntact(row)) return [{ key: row.key, value: undefined }]
      return isOf(ahead, row.key) ? [] : [row]
    }
    const within = (prefix: Key) => {
      const { gte, lt } = prefixRange(prefix)
      return `key >= ${bytesOf(gte)} AND key < ${bytesOf(lt)}`
    }
    const [those, index] = [within(prefixOf('connection')), within(prefixOf('indexEntry'))]
    for (const where of [`NOT (${those}) AND NOT (${index})`, those, index]) {
      await run(`DECLARE scanned NO SCROLL CURSOR FOR ${columns} WHERE ${where} ORDER BY key`)
      for (;;) {
        const rows = await run<Row>(`FETCH ${scannedPerRead} FROM scanned`)
        if (rows.length === 0) break
        await take(rows.flatMap(scanned))
      }
      await run('CLOSE scanned')
    }
  }
}

/** Looks and repairs in one transaction: writers wait, or the new index would be without their commits. */
export function repairDatabase<T>(database: PostgresStore, work: (repair: Repair) => Promise<T>): Promise<T> {
  return database.transaction('BEGIN', async (run) => {
    await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
    return work({
      scan: scanWith(run),
      async replaceIndex(entries, more) {
        for (const { gte, lt } of [prefixOf('indexEntry'), ...directoryIndexKinds].map(prefixRange)) {
          await run(`DELETE FROM postern_records WHERE key >= ${bytesOf(gte)} AND key < ${bytesOf(lt)}`)
        }
        for (const piece of piecesOf(entries, { most: postgresEntriesPerStatement })) await insertEntries(run, piece)
        await insertEntries(run, more)
      },
    })
  })
}

/** A literal: a cursor takes no parameters from every client. */
function bytesOf(key: Key): string {
  return `'\\x${asBuffer(key).toString('hex')}'::bytea`
}
