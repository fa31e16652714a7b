/** Stores of every earlier layout get the registry's indexes and listings, once (door contract, 4). */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { open } from 'lmdb'
import {
  deleting,
  latin1Key,
  listingKey,
  memberKey,
  membershipKey,
  namespaceKey,
  ownedKey,
  registryIndexKinds,
  serverKey,
  startedKey,
} from '../../src/storage/keys.ts'
import { appendChecksum, noKey } from '../../src/storage/lmdb/checksum.ts'
import { keyEncoder } from '../../src/storage/lmdb/root.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { openPostgresStore } from '../../src/storage/postgres/store.ts'
import { readListing, readNamespace } from '../../src/storage/registry-records.ts'
import type { Entry, Store } from '../../src/storage/store.ts'
import { isHere } from '../support/needs.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../support/postgres.ts'
import { workplace } from '../support/workplace.ts'

const text = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
const detail = {
  qualifiedName: 'Acme/weather',
  displayName: 'Weather',
  description: 'Forecasts',
  iconUrl: null,
  remote: true,
  deploymentUrl: 'https://x.example.com/mcp',
  connections: [{ type: 'http', deploymentUrl: 'https://x.example.com/mcp', configSchema: {} }],
  security: null,
  tools: [{ name: 'get_forecast', description: null, inputSchema: { type: 'object' } }],
  resources: null,
  prompts: null,
}
/** As older programs wrote them, with one that is no record. */
const older: Entry[] = [
  { key: startedKey, value: text('2026-01-02T03:04:05.000Z') },
  { key: namespaceKey('Acme'), value: text({ namespace: 'Acme', organizationId: 'org' }) },
  { key: namespaceKey('ada'), value: text({ namespace: 'ada', userId: 'ada' }) },
  { key: namespaceKey('odd'), value: text('no record') },
  { key: memberKey('org', 'tomás'), value: text('owner') },
  { key: serverKey('Acme/weather'), value: text(detail) },
]

async function expectUpgraded(store: Store): Promise<void> {
  const namespace = async (name: string) => readNamespace((await store.get(namespaceKey(name))) as Uint8Array)
  expect(await namespace('Acme')).toEqual({
    namespace: 'Acme',
    organizationId: 'org',
    createdAt: '2026-01-02T03:04:05.000Z',
  })
  const { entries } = await store.range({ gte: registryIndexKinds[0] as Uint8Array, lt: deleting, limit: 1 })
  expect(entries).toEqual([])
  const found: string[] = []
  for (const kind of registryIndexKinds) {
    const end = Buffer.of((kind[0] as number) + 1)
    found.push(...(await store.keys({ gte: kind, lt: end, limit: 100 })).keys.map(latin1Key))
  }
  expect(found.sort()).toEqual(
    [
      'Nacme\0Acme',
      latin1Key(ownedKey({ organizationId: 'org' }, 'Acme')),
      latin1Key(ownedKey({ userId: 'ada' }, 'ada')),
      latin1Key(membershipKey('tomás', 'org')),
    ].sort(),
  )
  expect(readListing((await store.get(listingKey('Acme/weather'))) as Uint8Array)).toMatchObject({
    qualifiedName: 'Acme/weather',
    displayName: 'Weather',
    isDeployed: true,
    tools: ['get_forecast'],
    createdAt: '2026-01-02T03:04:05.000Z',
    unlisted: false,
  })
}

/** How each layout kept a value of a single record. */
const layouts: Readonly<Record<number, (entry: Entry) => Uint8Array>> = {
  1: ({ value }) => value,
  2: ({ value }) => appendChecksum(noKey, value),
  3: ({ key, value }) => appendChecksum(key, value),
  4: ({ key, value }) => appendChecksum(key, value),
}

for (const [version, stored] of Object.entries(layouts)) {
  test(`a folder of layout ${version}`, async () => {
    using place = workplace()
    const root = open({ path: place.folder, overlappingSync: false, maxDbs: 4 })
    const data = root.openDB({ name: 'postern', encoding: 'binary', keyEncoder } as never)
    root.openDB({ name: 'runs', encoding: 'binary', keyEncoder } as never)
    const format = version === '1' ? data : root.openDB({ name: 'format', encoding: 'binary', keyEncoder } as never)
    root.transactionSync(() => {
      for (const entry of older) data.put(Buffer.from(entry.key), Buffer.from(stored(entry)))
      format.put(Buffer.from('v'), Buffer.from(`postern ${version}`))
    })
    await root.close()
    for (let opened = 0; opened < 2; opened += 1) {
      const store = openLmdbStore(place.folder, undefined, (_from, _to, upgrade) => void upgrade())
      await expectUpgraded(store)
      await store.close()
    }
  })
}

describe.skipIf(!isHere('PostgreSQL'))('a database of schema 1 (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  test('is upgraded by one of several that start at once', async () => {
    const url = await cluster.newDatabase()
    const address = addressOf(url)
    const before = await openPostgresStore({ address, pool: 2, mayMigrate: true })
    await before.load({ puts: older })
    await before.close()
    await cluster.query(url, 'UPDATE postern_instance SET version = 1, oldest = 1')
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ address, pool: 2, mayMigrate: true })))
    for (const store of stores) await expectUpgraded(store)
    // Not again: what was written since stays.
    const listing = { key: listingKey('Acme/weather'), value: text({ kept: true }) }
    await stores[0]?.commit({ puts: [listing] })
    await Promise.all(stores.map((store) => store.close()))
    const again = await openPostgresStore({ address, pool: 2, mayMigrate: true })
    expect(Buffer.from((await again.get(listing.key)) as Uint8Array).toString()).toBe('{"kept":true}')
    await again.close()
  })
})
