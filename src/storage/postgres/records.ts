/** Reads records from the database, and checks each against its checksum. */

import type { Clock } from '../../clock.ts'
import { sharedReadKeysMax } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { concatenate } from '../concatenated.ts'
import { isSmall } from '../record-kinds.ts'
import { type Key, type Range, type Store, StoreError } from '../store.ts'
import { bytesArray } from './arrays.ts'
import { createSharedReads } from './shared-reads.ts'
import type { Statements } from './statements.ts'
import { signed } from './write.ts'

export interface Row {
  readonly key: Buffer
  readonly value: Buffer
  /** A bigint as text; null where the database has counted. */
  readonly checksum: string | null
}

const columns = 'key, value, checksum'

export function createRecords(
  { read, readLarge }: Pick<Statements, 'read' | 'readLarge'>,
  clock: Clock,
): Pick<Store, 'get' | 'getMany' | 'range' | 'keys' | 'concatValues' | 'isRemote'> {
  const single = `SELECT ${columns} FROM postern_records WHERE key = ANY ($1::bytea[])`
  const shared = createSharedReads<Row>(
    async (keys, since) => inOrder(keys, await read<Row>(single, [bytesArray(keys)], since)),
    clock,
  )

  async function rowsAt(keys: readonly Key[]): Promise<readonly (Row | undefined)[]> {
    if (keys.length <= sharedReadKeysMax && keys.every(isSmall)) return shared(keys)
    return inOrder(keys, await readLarge<Row>(single, [bytesArray(keys)]))
  }

  /** Verified for each caller by itself: a damaged record is no concern of those who share the statement. */
  async function getMany(keys: readonly Key[]): Promise<(Uint8Array | undefined)[]> {
    return (await rowsAt(keys)).map((row) => row && verified(row))
  }

  /** The rows of a range, one more than its limit if there are more, and the row of one more key. */
  async function rowsOf({ gte, lt, limit }: Range, beside?: Key): Promise<{ rows: readonly Row[]; beside?: Row }> {
    const rows = `SELECT ${columns} FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3`
    const bounds = [asBuffer(gte), asBuffer(lt), limit + 1]
    if (beside === undefined) return { rows: await readLarge<Row>(rows, bounds) }
    // Last, if it is there: a branch of a union is read after the one before it.
    const both = `(${rows}) UNION ALL SELECT ${columns} FROM postern_records WHERE key = $4`
    const found = await readLarge<Row>(both, [...bounds, asBuffer(beside)])
    const last = found.at(-1)
    if (last === undefined || !last.key.equals(asBuffer(beside))) return { rows: found }
    return { rows: found.slice(0, -1), beside: last }
  }

  return {
    isRemote: true,
    get: async (key) => (await getMany([key]))[0],
    getMany,
    async range(range) {
      const { rows } = await rowsOf(range)
      const entries = rows.slice(0, range.limit).map((row) => ({ key: row.key, value: verified(row) }))
      return { entries, more: rows.length > range.limit }
    },
    async keys({ gte, lt, limit }) {
      const rows = await read<Pick<Row, 'key'>>(
        'SELECT key FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3',
        [asBuffer(gte), asBuffer(lt), limit + 1],
      )
      return { keys: rows.slice(0, limit).map(({ key }) => key), more: rows.length > limit }
    },
    async concatValues(range, beside) {
      const { rows, beside: other } = await rowsOf(range, beside)
      const page = rows.slice(0, range.limit)
      const values = concatenate(page.map(verified), rows.length > range.limit ? page.at(-1)?.key : undefined)
      return { ...values, beside: other && verified(other) }
    },
  }
}

function inOrder(keys: readonly Key[], rows: readonly Row[]) {
  const found = new Map(rows.map((row) => [row.key.toString('latin1'), row]))
  return keys.map((key) => found.get(asBuffer(key).toString('latin1')))
}

/** The value, whose checksum must match. Throws StoreError `damaged`. */
function verified(row: Row): Uint8Array {
  if (isIntact(row)) return row.value
  throw new StoreError('damaged', 'a record is damaged: run `postern store verify`')
}

export function isIntact({ key, value, checksum }: Row): boolean {
  return checksum === null || BigInt(checksum) === signed(checksumOf(key, value))
}
