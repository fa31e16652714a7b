/** Connections to one host: how many there are, and which are closed after a statement that was late. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { directoryVersionKey, keyOf } from '../../../src/storage/keys.ts'
import { createClient, storeRenewMs } from '../../../src/storage/postgres/database-client.ts'
import { openPostgresStore } from '../../../src/storage/postgres/store.ts'
import type { Host } from '../../../src/storage/postgres/store-url.ts'
import { clockOf } from '../../support/clock.ts'
import { isHere } from '../../support/needs.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../../support/postgres.ts'

/** A client with a clock of its own. */
function clientOf(url: string, max: number) {
  const address = addressOf(url)
  const state = { now: 0 }
  const client = createClient(address, address.hosts[0] as Host, {
    max,
    label: 'client',
    clock: clockOf(() => state.now),
  })
  return { state, client }
}

test('to a server that never answers there are never more connections than may be', async () => {
  const state = { open: 0, most: 0 }
  const accepted = Promise.withResolvers<void>()
  using server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open() {
        state.open += 1
        state.most = Math.max(state.most, state.open)
        if (state.open === 3) accepted.resolve()
      },
      close() {
        state.open -= 1
      },
      data() {},
    },
  })
  const { client } = clientOf(`postgres://a@127.0.0.1:${server.port}/b`, 3)
  for (let round = 0; round < 10; round += 1) {
    const late = Array.from({ length: 9 }, () => client.query('SELECT 1', [], 100).catch(() => {}))
    if (round === 0) await accepted.promise
    await Promise.all(late)
  }
  // The server may notice a new one before the end of the one that it replaces.
  expect(state.most).toBeLessThanOrEqual(2 * 3)
  client.close()
})

describe.skipIf(!isHere('PostgreSQL'))('on a cluster of its own (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  test('a late statement ends its own connection, and those that are idle once a second', async () => {
    const { state, client } = clientOf(await cluster.newDatabase(), 3)
    const pids = async () => {
      const one = () => client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid', [], state.now + 60_000)
      return new Set((await Promise.all([one(), one(), one()])).map(([row]) => row?.pid))
    }
    const late = () => expect(client.query('SELECT pg_sleep(600)', [], state.now)).rejects.toThrow('in time')
    const first = await pids()
    await late()
    const second = await pids()
    expect([first.size, second.size, first.intersection(second).size]).toEqual([3, 3, 0])
    await late()
    expect(second.intersection(await pids()).size).toBe(2)
    state.now += storeRenewMs
    await late()
    expect(second.intersection(await pids()).size).toBe(0)
    client.close()
    await expect(pids()).rejects.toThrow('its connections are closed')
  })

  test('what the server refuses costs no connection', async () => {
    const { client } = clientOf(await cluster.newDatabase(), 1)
    const pid = async () => (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid', [], 60_000))[0]?.pid
    const before = await pid()
    await expect(client.query('SELECT 1 / 0', [], 60_000)).rejects.toThrow('division by zero')
    expect(await pid()).toBe(before as number)
    client.close()
  })

  test('small records are read and written while reads of large ones take as long as they like', async () => {
    const url = await cluster.newDatabase()
    const store = await openPostgresStore({ address: addressOf(url), mayMigrate: true })
    const puts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => ({
      key: keyOf('server', name),
      value: Buffer.of(1),
    }))
    await store.commit({ puts: [...puts, { key: directoryVersionKey, value: Buffer.of(1) }] })
    // A server's record can be read when nobody has the lock.
    await cluster.query(
      url,
      `CREATE FUNCTION waits() RETURNS boolean LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN true; END';
       ALTER TABLE postern_records RENAME TO all_records;
       CREATE VIEW postern_records AS
         SELECT * FROM all_records WHERE CASE WHEN get_byte(key, 0) = ascii('s') THEN waits() ELSE true END`,
    )
    const reads = await store.transaction('BEGIN', async (run) => {
      await run('SELECT pg_advisory_xact_lock(1)')
      const large = puts.map(({ key }) => store.get(key).catch((error: Error) => error))
      const waiting = "SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      while ((await run<{ n: number }>(waiting))[0]?.n === 0) await store.get(directoryVersionKey)
      for (let at = 0; at < 20; at += 1) {
        const value = Buffer.of(at)
        expect(await store.commit({ puts: [{ key: directoryVersionKey, value }] })).toEqual({ ok: true })
        expect(await store.get(directoryVersionKey)).toEqual(value)
      }
      // Half of the six connections that are neither reserved nor watch.
      expect((await run<{ n: number }>(waiting))[0]?.n).toBeLessThanOrEqual(3)
      return large
    })
    await Promise.all(reads)
    await store.close()
  })
})
