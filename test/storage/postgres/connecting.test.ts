/** Ways to a database: over TLS that is verified, and through a pooler. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgresStore, type PostgresStore } from '../../../src/storage/postgres/store.ts'
import { isHere } from '../../support/needs.ts'
import { addressOf, type PostgresCluster, startPooler, startPostgres } from '../../support/postgres.ts'
import { cert, key } from '../../support/tls.ts'
import { workplace } from '../../support/workplace.ts'

const open = (url: string) => openPostgresStore({ address: addressOf(url), mayMigrate: true, waitMs: 1500 })

/** Writes and reads in all ways. */
async function works(store: PostgresStore): Promise<void> {
  const entry = (name: string) => ({ key: Buffer.from(name), value: Buffer.from(name) })
  await Promise.all(Array.from({ length: 30 }, (_, i) => store.commit({ puts: [entry(`a${i}`)] })))
  await store.load({ puts: Array.from({ length: 2500 }, (_, i) => entry(`b${i}`)) })
  const { entries, more } = await store.range({ gte: Buffer.from('a'), lt: Buffer.from('c'), limit: 3000 })
  expect([entries.length, more]).toEqual([2530, false])
  expect(await Promise.all(entries.slice(0, 30).map((one) => store.get(one.key)))).toEqual(
    entries.slice(0, 30).map(({ value }) => value),
  )
  await store.close()
}

describe.skipIf(!isHere('PostgreSQL'))('over TLS (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  let url: string
  const place = workplace()
  const authority = join(place.folder, 'ca.pem')
  beforeAll(async () => {
    cluster = await startPostgres({ tls: { cert, key } })
    url = await cluster.newDatabase()
    writeFileSync(authority, cert)
  })
  afterAll(async () => {
    await cluster.stop()
    place[Symbol.dispose]()
  })

  test('a certificate that is vouched for is taken', async () => {
    await works(await open(`${url}?sslmode=verify-full&sslrootcert=${authority}`))
  })

  test('one that nobody vouches for is not', async () => {
    await expect(open(`${url}?sslmode=verify-full`)).rejects.toThrow('the store cannot be opened')
  })

  test('nor one of another name', async () => {
    const elsewhere = url.replace('127.0.0.1', 'localhost')
    await expect(open(`${elsewhere}?sslmode=verify-full&sslrootcert=${authority}`)).rejects.toThrow(
      'the store cannot be opened',
    )
  })

  test('require asks for TLS, and no more', async () => {
    const store = await open(`${url}?sslmode=require`)
    const encrypted =
      "SELECT bool_and(ssl) AS all FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'postern'"
    expect([...((await cluster.query(url, encrypted)) as object[])]).toEqual([{ all: true }])
    await store.close()
  })

  test('a server without TLS is refused, never spoken to in the clear', async () => {
    const plain = await startPostgres()
    const without = await plain.newDatabase()
    for (const mode of ['require', `verify-full&sslrootcert=${authority}`]) {
      await expect(open(`${without}?sslmode=${mode}`)).rejects.toThrow('the store cannot be opened')
    }
    await plain.stop()
  })
})

test('a password in the environment is nobody’s: the one of the URL is sent, even an empty one', async () => {
  const sent: string[] = []
  // It asks for a password in the clear, and takes none.
  using server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, bytes) {
        if (bytes.length > 8 && bytes.readInt32BE(4) === 0x30000) socket.write(Buffer.of(0x52, 0, 0, 0, 8, 0, 0, 0, 3))
        else {
          sent.push(bytes.toString('latin1'))
          socket.end()
        }
      },
    },
  })
  const before = process.env['PGPASSWORD']
  process.env['PGPASSWORD'] = 'of-the-environment'
  const url = `postgres://a@127.0.0.1:${server.port}/b`
  await openPostgresStore({ address: addressOf(url), waitMs: 0 }).catch(() => {})
  if (before === undefined) delete process.env['PGPASSWORD']
  else process.env['PGPASSWORD'] = before
  expect([...new Set(sent)]).toEqual(['p\0\0\0\x05\0'])
})

describe.skipIf(!isHere('PgBouncer'))('through a pooler (needs PgBouncer)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  test('of sessions', async () => {
    await using pooler = await startPooler(await cluster.newDatabase(), 'session')
    await works(await open(pooler.url))
  })

  test('of transactions, without named statements', async () => {
    await using pooler = await startPooler(await cluster.newDatabase(), 'transaction')
    const stores = await Promise.all([1, 2, 3].map(() => open(`${pooler.url}?prepare=false`)))
    for (const store of stores.slice(1)) {
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.commit({ puts: [{ key: Buffer.from(`a${i}`), value: Buffer.of(1) }] }),
        ),
      )
      await store.close()
    }
    await works(stores[0] as PostgresStore)
  })
})
