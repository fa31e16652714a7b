/** Writes to PostgreSQL: a commit is one call of `postern_commit` (`schema.ts`), a load one transaction. */

import { randomBytes } from 'node:crypto'
import { postgresEntriesPerStatement } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { entryBytes, piecesOf } from '../pieces.ts'
import { type Committed, checkKey, type Entry, type Write } from '../store.ts'
import { arrayOf, bytesArray } from './arrays.ts'
import type { Run } from './database-client.ts'
import { schemaVersion } from './schema.ts'

/** Bytes of keys and values in one statement of a load, beyond its last entry. Past it: the next statement. */
const postgresBytesPerStatement = 8 * 2 ** 20
const ofStatement = { most: postgresEntriesPerStatement, bytes: postgresBytesPerStatement }

/** Ours: milliseconds that PostgreSQL waits for the next statement of a load; meanwhile the writes of all replicas wait, and the process that loads may have stopped. Past it: PostgreSQL ends the load. */
export const loadIdleMs = 10_000

const call =
  'SELECT kind, at FROM postern_commit($1, $2, $3, $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bigint[])'

/**
 * The call of `postern_commit` for a small write; its id makes it happen once, however often it is sent.
 * `wantsStandby`: refused without a synchronous standby. Throws StoreError `too_large` for a key out of bounds.
 */
export function commitCall(wantsStandby: boolean, write: Write) {
  const { checks = [], counts = [] } = write
  const [puts, deletes] = [[...(write.puts ?? [])], [...(write.deletes ?? [])]]
  for (const key of [...deletes, ...puts.map((entry) => entry.key), ...counts.map((count) => count.key)]) checkKey(key)
  return {
    statement: call,
    values: [
      randomBytes(16),
      schemaVersion,
      wantsStandby,
      bytesArray(checks.map(({ key }) => key)),
      bytesArray(checks.map(({ value }) => value)),
      bytesArray(counts.map(({ key }) => key)),
      arrayOf(counts.map(({ add }) => add.join(' '))),
      arrayOf(counts.map(({ most }) => (most ?? []).map(bound).join(' '))),
      bytesArray(deletes),
      ...putColumns(lastOfEach(puts)),
    ],
  }
}

/** A numeric of PostgreSQL 13 has no infinity. */
function bound(most: number): string {
  return most === Number.POSITIVE_INFINITY ? '1e30' : String(most)
}

/** A row of `postern_commit`. None: the write was done. */
export interface CommitRow {
  readonly kind: 'found' | 'conflict' | 'full'
  readonly at: Buffer
}

export function outcomeOf(rows: readonly CommitRow[]): Committed {
  const of = (wanted: string) => rows.filter(({ kind }) => kind === wanted).map(({ at }) => at)
  const [conflicts, full] = [of('conflict'), of('full')]
  return conflicts.length + full.length === 0 ? { ok: true } : { ok: false, conflicts, full }
}

/** A write of any size, in a transaction that is open. Its puts and deletes are consumed in pieces. */
export async function loadWith(run: Run, wantsStandby: boolean, write: Write): Promise<Committed> {
  await run(`SET LOCAL idle_in_transaction_session_timeout = ${loadIdleMs}`)
  // Against commits of all replicas, which take a weaker lock of the table before they look at anything.
  await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
  const { statement, values } = commitCall(wantsStandby, { checks: write.checks ?? [], counts: write.counts ?? [] })
  const checked = outcomeOf(await run<CommitRow>(statement, values))
  // Nothing was written then, and the caller's transaction ends as one that only read.
  if (!checked.ok) return checked
  for (const deletes of piecesOf(write.deletes ?? [], { ...ofStatement, bytesOf: ({ length }) => length })) {
    for (const key of deletes) checkKey(key)
    await run('DELETE FROM postern_records WHERE key = ANY ($1::bytea[])', [bytesArray(deletes)])
  }
  for (const puts of piecesOf(write.puts ?? [], { ...ofStatement, bytesOf: entryBytes })) await insertEntries(run, puts)
  return checked
}

/** Adds entries, or replaces those of the same keys. */
export async function insertEntries(run: Run, puts: readonly Entry[]): Promise<void> {
  for (const { key } of puts) checkKey(key)
  await run(insert, putColumns(lastOfEach(puts)))
}

const insert =
  'INSERT INTO postern_records SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum'

/** As PostgreSQL's bigint has it. */
export function signed(checksum: bigint): bigint {
  return BigInt.asIntN(64, checksum)
}

function putColumns(puts: readonly Entry[]): [keys: string, values: string, checksums: string] {
  return [
    bytesArray(puts.map(({ key }) => key)),
    bytesArray(puts.map(({ value }) => value)),
    arrayOf(puts.map(({ key, value }) => String(signed(checksumOf(key, value))))),
  ]
}

/** One entry for each key, the last one: a statement may write a row once. */
function lastOfEach(puts: readonly Entry[]): Entry[] {
  return [...new Map(puts.map((entry) => [asBuffer(entry.key).toString('latin1'), entry])).values()]
}
