/** Writes to PostgreSQL: a commit is one call of `postern_commit` (`schema.ts`), a load one transaction. */

import type { SQL } from 'bun'
import { postgresEntriesPerStatement } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { type Committed, checkKey, type Entry, type Key, type Write } from '../store.ts'
import { arrayOf, bytesArray } from './arrays.ts'

/** What runs a statement: the pool, or the connection of a transaction. */
type Runner = Pick<SQL, 'unsafe'>

/** Everything of a write but what may be of any size. */
export async function commitWith(
  runner: Runner,
  { checks = [], counts = [] }: Write,
  { puts, deletes }: { readonly puts: readonly Entry[]; readonly deletes: readonly Key[] },
): Promise<Committed> {
  for (const key of [...deletes, ...puts.map((entry) => entry.key), ...counts.map((count) => count.key)]) checkKey(key)
  const last = lastOfEach(puts)
  const outcome: { kind: 'conflict' | 'full'; at: Buffer }[] = await runner.unsafe(
    'SELECT kind, at FROM postern_commit($1::bytea[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bigint[])',
    [
      bytesArray(checks.map(({ key }) => key)),
      bytesArray(checks.map(({ value }) => value)),
      bytesArray(counts.map(({ key }) => key)),
      arrayOf(counts.map(({ add }) => add.join(' '))),
      arrayOf(counts.map(({ most }) => (most ?? []).join(' '))),
      bytesArray(deletes),
      ...putColumns(last),
    ],
  )
  if (outcome.length === 0) return { ok: true }
  const of = (wanted: string) => outcome.filter(({ kind }) => kind === wanted).map(({ at }) => at)
  return { ok: false, conflicts: of('conflict'), full: of('full') }
}

/** A write of any size. Its puts and deletes are consumed in pieces. */
export async function load(sql: SQL, write: Write): Promise<Committed> {
  const work = async (transaction: Runner): Promise<Committed> => {
    // Against commits of all replicas, which take a weaker lock of the table before they look at anything.
    await transaction.unsafe('LOCK TABLE postern_records IN EXCLUSIVE MODE')
    const checked = await commitWith(transaction, write, { puts: [], deletes: [] })
    if (!checked.ok) throw new Refused(checked)
    for (const deletes of piecesOf(write.deletes ?? [])) {
      for (const key of deletes) checkKey(key)
      await transaction.unsafe('DELETE FROM postern_records WHERE key = ANY ($1::bytea[])', [bytesArray(deletes)])
    }
    for (const puts of piecesOf(write.puts ?? [])) {
      for (const { key } of puts) checkKey(key)
      await transaction.unsafe(insert, putColumns(lastOfEach(puts)))
    }
    return checked
  }
  return sql.begin(work).catch((error) => {
    if (error instanceof Refused) return error.outcome
    throw error
  })
}

const insert =
  'INSERT INTO postern_records SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum'

/** Rolls a transaction back whose checks failed. */
class Refused extends Error {
  override readonly name = 'Refused'
  readonly outcome: Committed

  constructor(outcome: Committed) {
    super('a check of a load failed')
    this.outcome = outcome
  }
}

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

function* piecesOf<T>(all: Iterable<T>): Generator<T[]> {
  let piece: T[] = []
  for (const one of all) {
    piece.push(one)
    if (piece.length < postgresEntriesPerStatement) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}
