/**
 * The engine on PostgreSQL, through the runtime's own client (stores contract, 1). All replicas of postern share one
 * database: there are no synchronous reads, and a read asks the primary.
 */

import { SQL } from 'bun'
import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { concatenate } from '../concatenated.ts'
import { type Key, type Range, type Store, StoreError } from '../store.ts'
import { bytesArray } from './arrays.ts'
import { schema } from './schema.ts'
import { createSharedReads } from './shared-reads.ts'
import { commitWith, load, signed } from './write.ts'

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string
  /** Connections at most. */
  readonly pool: number
}

interface Row {
  readonly key: Buffer
  readonly value: Buffer
  /** A bigint as text; null where the database has counted. */
  readonly checksum: string | null
}

/** Opens the store and makes the schema if it is not there. Throws StoreError. */
export async function openPostgresStore({ url, pool }: PostgresOptions): Promise<Store> {
  const sql = new SQL({ url, max: pool })
  let isClosed = false

  /** Runs `act`, and throws its failure as a StoreError. */
  async function asked<T>(act: () => Promise<T>): Promise<T> {
    if (isClosed) throw new StoreError('fatal', 'the store is closed')
    try {
      return await act()
    } catch (error) {
      if (error instanceof StoreError) throw error
      throw new StoreError('unavailable', `the database does not answer: ${(error as Error).message}`, { cause: error })
    }
  }

  async function rowsOf({ gte, lt, limit }: Range): Promise<{ readonly rows: readonly Row[]; readonly more: boolean }> {
    const rows: Row[] = await asked(() =>
      sql.unsafe(
        'SELECT key, value, checksum::text FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3',
        [asBuffer(gte), asBuffer(lt), limit + 1],
      ),
    )
    return { rows: rows.slice(0, limit), more: rows.length > limit }
  }

  const rowsAt = createSharedReads(async (keys: readonly Key[]) => {
    const rows: Row[] = await asked(() =>
      sql.unsafe('SELECT key, value, checksum::text FROM postern_records WHERE key = ANY ($1::bytea[])', [
        bytesArray(keys),
      ]),
    )
    const found = new Map(rows.map((row) => [row.key.toString('latin1'), row]))
    return keys.map((key) => found.get(asBuffer(key).toString('latin1')))
  })

  /** Verified for each caller by itself: a damaged record is no concern of those who share the statement. */
  async function getMany(keys: readonly Key[]): Promise<(Uint8Array | undefined)[]> {
    return (await rowsAt(keys)).map((row) => row && verified(row))
  }

  await asked(() =>
    sql.begin(async (transaction) => {
      for (const statement of schema) await transaction.unsafe(statement)
    }),
  )
  return {
    get: async (key) => (await getMany([key]))[0],
    getMany,
    async range(range) {
      const { rows, more } = await rowsOf(range)
      return { entries: rows.map((row) => ({ key: row.key, value: verified(row) })), more }
    },
    async keys({ gte, lt, limit }) {
      const rows: Pick<Row, 'key'>[] = await asked(() =>
        sql.unsafe('SELECT key FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3', [
          asBuffer(gte),
          asBuffer(lt),
          limit + 1,
        ]),
      )
      return { keys: rows.slice(0, limit).map(({ key }) => key), more: rows.length > limit }
    },
    async concatValues(range) {
      const { rows, more } = await rowsOf(range)
      return concatenate(rows.map(verified), more ? rows.at(-1)?.key : undefined)
    },
    commit: (write) =>
      asked(() => commitWith(sql, write, { puts: [...(write.puts ?? [])], deletes: [...(write.deletes ?? [])] })),
    load: (write) => asked(() => load(sql, write)),
    async close() {
      isClosed = true
      // What is under way is given up: a database that has stopped would keep it forever.
      await sql.close({ timeout: 0 })
    },
  }
}

/** The value, whose checksum must match. Throws StoreError `damaged`. */
function verified({ key, value, checksum }: Row): Uint8Array {
  if (checksum === null || BigInt(checksum) === signed(checksumOf(key, value))) return value
  throw new StoreError('damaged', 'a record is damaged: run `postern verify`')
}
