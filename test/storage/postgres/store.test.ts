/** The engine on PostgreSQL. Where Debian's package is not installed, its tests are skipped. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openPostgresStore as open, type PostgresOptions } from '../../../src/storage/postgres/store.ts'
import { isHere } from '../../support/needs.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../../support/postgres.ts'
import { storeConformance } from '../conformance.ts'

const openPostgresStore = ({ url, ...options }: Omit<PostgresOptions, 'address'> & { readonly url: string }) =>
  open({ address: addressOf(url), mayMigrate: true, ...options })

describe.skipIf(!isHere('PostgreSQL'))('on a cluster of its own (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  storeConformance('PostgreSQL', async () => openPostgresStore({ url: await cluster.newDatabase(), pool: 4 }))

  test('of two replicas that write at once, none loses a write, and each sees the other’s', async () => {
    const url = await cluster.newDatabase()
    const [one, other] = await Promise.all([openPostgresStore({ url, pool: 4 }), openPostgresStore({ url, pool: 4 })])
    const key = Buffer.from('n')
    const increment = async (store: typeof one): Promise<void> => {
      const value = await store.get(key)
      const next = Buffer.from(String(Number(value === undefined ? 0 : Buffer.from(value).toString()) + 1))
      const { ok } = await store.commit({ checks: [{ key, value: value ?? null }], puts: [{ key, value: next }] })
      if (!ok) await increment(store)
    }
    await Promise.all(Array.from({ length: 40 }, (_, i) => increment(i % 2 === 0 ? one : other)))
    for (const store of [one, other]) expect(Buffer.from((await store.get(key)) ?? '').toString()).toBe('40')
    await Promise.all([one.close(), other.close()])
  })

  test('a value that was changed behind its checksum is damaged, and not returned', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, pool: 2 })
    const key = Buffer.from('a')
    await store.commit({ puts: [{ key, value: Buffer.from('1') }] })
    await cluster.query(url, "UPDATE postern_records SET value = '\\x32'")
    const other = store.get(Buffer.from('b'))
    await expect(store.get(key)).rejects.toMatchObject({ kind: 'damaged' })
    // It was asked in the same statement.
    expect(await other).toBeUndefined()
    await store.close()
  })

  test('nothing is committed where it would not be durable', async () => {
    const url = await cluster.newDatabase()
    await cluster.query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`)
    await expect(openPostgresStore({ url, pool: 2, waitMs: 1500 })).rejects.toThrow('synchronous_commit is off')
  })
})
