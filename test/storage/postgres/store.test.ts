/** The engine on PostgreSQL. Where Debian's package is not installed, its tests are skipped. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { schemaVersion } from '../../../src/storage/postgres/schema.ts'
import {
  openPostgresStore as open,
  type PostgresOptions,
  postgresCommitKeysMax,
} from '../../../src/storage/postgres/store.ts'
import { loadIdleMs } from '../../../src/storage/postgres/write.ts'
import type { StoreError } from '../../../src/storage/store.ts'
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

  test('a load of a process that has stopped is ended, and keeps no other write waiting for long', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, pool: 2 })
    await cluster.query(url, 'CREATE TABLE noted (waits text)')
    const note = "INSERT INTO noted VALUES (current_setting('idle_in_transaction_session_timeout'))"
    await cluster.query(
      url,
      `CREATE FUNCTION note() RETURNS trigger AS $$ BEGIN ${note}; RETURN NULL; END $$ LANGUAGE plpgsql`,
    )
    await cluster.query(url, 'CREATE TRIGGER note AFTER INSERT ON postern_records EXECUTE FUNCTION note()')
    const put = (at: number) => ({ key: Buffer.from(`k${at}`), value: Buffer.from('1') })
    await store.commit({ puts: Array.from({ length: postgresCommitKeysMax + 1 }, (_, at) => put(at)) })
    expect(await cluster.query(url, 'SELECT DISTINCT waits FROM noted')).toEqual([{ waits: `${loadIdleMs / 1000}s` }])
    await store.close()
  })

  test('nothing is committed where it would not be durable', async () => {
    const url = await cluster.newDatabase()
    await cluster.query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`)
    await expect(openPostgresStore({ url, pool: 2, waitMs: 1500 })).rejects.toThrow('synchronous_commit is off')
  })

  test('a program that the schema has left behind is refused, at its start and in each commit', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, pool: 2 })
    const put = () => store.commit({ puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] })
    await put()
    await cluster.query(url, 'UPDATE postern_instance SET version = 99')
    // A newer one that still lets it be.
    expect(await put()).toEqual({ ok: true })
    const again = await openPostgresStore({ url, pool: 2 })
    await again.close()
    await cluster.query(url, 'UPDATE postern_instance SET oldest = 99')
    await expect(put()).rejects.toThrow('this program is too old for it')
    await expect(openPostgresStore({ url, waitMs: 0 })).rejects.toThrow('upgraded by a newer postern')
    await store.close()
  })

  test('an older schema is upgraded by a start, and refused by a command', async () => {
    const url = await cluster.newDatabase()
    await expect(openPostgresStore({ url, mayMigrate: false })).rejects.toThrow('there is no store in this database')
    await openPostgresStore({ url }).then((store) => store.close())
    await cluster.query(url, 'UPDATE postern_instance SET version = 0')
    await expect(openPostgresStore({ url, mayMigrate: false })).rejects.toThrow('run `postern store migrate` first')
    await openPostgresStore({ url }).then((store) => store.close())
    const rows = await cluster.query(url, 'SELECT version FROM postern_instance')
    expect([...(rows as object[])]).toEqual([{ version: schemaVersion }])
  })

  test('a database of a role that may do little says what is missing, at once', async () => {
    const url = await cluster.newDatabase()
    await cluster.query(url, 'CREATE ROLE little LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC')
    await expect(openPostgresStore({ url: url.replace('postern@', 'little@') })).rejects.toThrow('permission denied')
    await expect(openPostgresStore({ url: url.replace('postern@', 'nobody@') })).rejects.toThrow(
      'role "nobody" does not exist',
    )
    // Its own database, and no right beyond that.
    await cluster.query(url, 'GRANT CREATE ON SCHEMA public TO little')
    const store = await openPostgresStore({ url: url.replace('postern@', 'little@') })
    expect(await store.commit({ puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] })).toEqual({ ok: true })
    expect((await store.health()).durability).toBe('local')
    await store.close()
  })

  test('with --store-sync required nothing is written while no standby is configured', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, pool: 2, isStandbyRequired: true })
    const put = () => store.commit({ puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] })
    await expect(put()).rejects.toThrow('no synchronous standby is configured')
    await expect(store.load({ puts: [] })).rejects.toMatchObject({ kind: 'unavailable' })
    expect(await store.get(Buffer.from('a'))).toBeUndefined()
    await store.close()
  })

  test('a commit that waits for a load gives up, and was not done', async () => {
    const url = await cluster.newDatabase()
    await openPostgresStore({ url }).then((one) => one.close())
    const role = `ALTER ROLE postern IN DATABASE ${new URL(url).pathname.slice(1)}`
    await cluster.query(url, `${role} SET lock_timeout = '200ms'`)
    const store = await openPostgresStore({ url, pool: 4 })
    const commit = await store.transaction('BEGIN', async (run) => {
      await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
      return store.commit({ puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] }).catch((error) => error)
    })
    expect(commit).toMatchObject({ kind: 'unavailable' })
    expect(await store.get(Buffer.from('a'))).toBeUndefined()
    await store.close()
  })

  test('replicas: a name is taken while its heartbeats move, and all have one base URL', async () => {
    const url = await cluster.newDatabase()
    const [one, other] = await Promise.all([openPostgresStore({ url, pool: 2 }), openPostgresStore({ url, pool: 2 })])
    const replica = { name: 'one', baseUrl: 'https://a', addresses: ['10.0.0.1 8787', '::1 8787'] }
    await one.join(replica)
    await expect(other.join(replica)).rejects.toThrow('another replica is named one')
    await expect(other.join({ ...replica, name: 'other', baseUrl: 'https://b' })).rejects.toThrow(
      'all must have the same',
    )
    await other.join({ ...replica, name: 'other', addresses: [] })
    expect((await other.replicas()).map(({ name }) => name)).toEqual(['one', 'other'])
    expect([...other.otherAddresses()]).toEqual(replica.addresses)
    await one.close()
    expect((await other.replicas()).map(({ name }) => name)).toEqual(['other'])
    // Killed a moment ago: its last heartbeat is young, and does not move.
    await cluster.query(url, "UPDATE postern_replicas SET name = 'gone', base_url = 'https://c'")
    await other.close()
    const next = await openPostgresStore({ url, pool: 2 })
    await next.join({ ...replica, name: 'gone' })
    await next.close()
  })

  test('of replicas that join at the same moment, those that contradict each other are refused', async () => {
    const url = await cluster.newDatabase()
    await openPostgresStore({ url }).then((one) => one.close())
    const replica = { name: 'same', baseUrl: 'https://a', addresses: [] }
    const wishes = [replica, { ...replica, baseUrl: 'https://b' }, { ...replica, name: 'other', baseUrl: 'https://b' }]
    const stores = await Promise.all(wishes.map(() => openPostgresStore({ url, pool: 2 })))
    const joined = await Promise.allSettled(stores.map((store, at) => store.join(wishes[at] ?? replica)))
    const urls = new Set(wishes.filter((_, at) => joined[at]?.status === 'fulfilled').map(({ baseUrl }) => baseUrl))
    expect([urls.size, joined[0]?.status === joined[1]?.status]).toEqual([1, false])
    await Promise.all(stores.map((store) => store.close()))
  })

  test('reads go on while a load keeps all writers waiting, and the load is not ended by one that is late', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url })
    const put = { puts: [{ key: Buffer.from('a'), value: Buffer.from('1') }] }
    await store.commit(put)
    const writes = await store.transaction('BEGIN', async (run) => {
      await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
      const waiting = Array.from({ length: 30 }, () => store.commit(put).catch((error: StoreError) => error.kind))
      for (let read = 0; read < 50; read += 1) expect(await store.get(Buffer.from('a'))).toEqual(Buffer.from('1'))
      const outcomes = await Promise.all(waiting)
      await run('SELECT 1')
      return outcomes
    })
    // Those that were sent gave up at the lock, and the others were not sent.
    expect(new Set(writes)).toEqual(new Set(['unavailable']))
    await store.close()
  })

  test('of a transaction whose connection is lost nothing stays, whatever is sent after that', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, label: 'lost' })
    const insert = (key: string) => `INSERT INTO postern_records VALUES ('${key}', 'x', NULL)`
    const outcome = store.transaction('BEGIN', async (run) => {
      await run(insert('a'))
      const [row] = await run<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await cluster.query(url, `SELECT pg_terminate_backend(${row?.pid})`)
      for (const key of ['b', 'c', 'd']) await run(insert(key)).catch(() => {})
      return run(insert('e'))
    })
    await expect(outcome).rejects.toMatchObject({ kind: 'unavailable' })
    expect((await store.range({ gte: Buffer.from('a'), lt: Buffer.from('z'), limit: 10 })).entries).toEqual([])
    await store.close()
  })

  test('a namespace without bounds is counted', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ url, pool: 2 })
    const count = { key: Buffer.from('u'), add: [1, 10], most: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] }
    expect(await store.commit({ counts: [count] })).toEqual({ ok: true })
    expect(Buffer.from((await store.get(count.key)) ?? []).toString()).toBe('1 10')
    await store.close()
  })
})
