/**
 * Whatever requests, servers and fixtures leave in a store is correct for `postern store verify`, and can be exported and
 * imported: nobody but the operator decides whether a backup can be read.
 */

import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeApiKey, revokeApiKey } from '../../src/auth/api-key.ts'
import { noPins, writingPins } from '../../src/features/pins/pin-record.ts'
import { exportLines } from '../../src/maintenance/export.ts'
import { importFile } from '../../src/maintenance/import.ts'
import { loadFixtures } from '../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../src/maintenance/seed/read-fixtures.ts'
import { drained } from '../../src/schema/steps.ts'
import { connectionChange, findConnection } from '../../src/storage/connections.ts'
import { keyOf } from '../../src/storage/keys.ts'
import { parseKey } from '../../src/storage/record-kinds.ts'
import type { Store } from '../../src/storage/store.ts'
import { pickConnection } from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { oneHash } from '../support/one-hash.ts'
import { createTestPlatform, problemsOf, silent, source, startOfTime, type TestPlatform } from '../support/platform.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { bearer, connectTo, localServer, localUpstream } from '../support/upstream.ts'
import { workplace } from '../support/workplace.ts'

const entriesOf = async (store: Store) =>
  (await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })).entries

/** Imports all of a store into another. Resolves with the number of records. */
async function move(store: Store, other: Store): Promise<number> {
  expect(await problemsOf({ store })).toEqual([])
  using place = workplace()
  const file = join(place.folder, 'export.jsonl')
  const lines: string[] = []
  const entries = await entriesOf(store)
  expect(
    await exportLines(
      async (take) => take(entries),
      'mine',
      (some) => lines.push(...some),
    ),
  ).toEqual([])
  writeFileSync(file, `${lines.join('\n')}\n`)
  const { records } = await importFile(other, file, { secret: 'mine' })
  expect(await problemsOf({ store: other })).toEqual([])
  return records
}

/** Resolves with the number of records that came back. */
async function roundTrip(store: Store): Promise<number> {
  const records = await move(store, openMemoryStore())
  // And beside what is there.
  await move(store, store)
  return records
}

async function put({ fetch }: Pick<TestPlatform, 'fetch'>, path: string, body: object): Promise<number> {
  const init = { method: 'PUT', headers: bearer(sampleKeys.ada), body: JSON.stringify(body) }
  return (await fetch(path, init)).status
}

const server = (configSchema: object, tools: object[] = []) => ({
  displayName: 'S',
  tools,
  connections: [{ type: 'http', deploymentUrl: 'https://x.example.com/mcp', configSchema }],
})

describe('what somebody registers', () => {
  test('with a field that has no name', async () => {
    const platform = await createTestPlatform()
    const text = { type: 'string' }
    const schema = { properties: { '': text, a: text }, required: ['a'] }
    expect(await put(platform, '/servers/ada/s', server(schema))).toBe(201)
    expect(await put(platform, '/connect/ada/c', { server: 'ada/s' })).toBe(201)
    expect(await put(platform, '/servers/ada/r', server({ ...schema, required: [''] }))).toBe(201)
    expect(await put(platform, '/connect/ada/d', { server: 'ada/r' })).toBe(400)
    await roundTrip(platform.store)
  })

  test('whose tools have names of which the last that is searched ends within a character', async () => {
    const platform = await createTestPlatform()
    // 140 of 117 characters leave 4 of those that are searched: three digits, and half of a mountain.
    const tools = Array.from({ length: 141 }, (_, at) => {
      return { name: `${String(at).padStart(3, '0')}${'🏔'.repeat(57)}`, inputSchema: { type: 'object' } }
    })
    expect(await put(platform, '/servers/ada/s', server({}, tools))).toBe(201)
    const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
    const values = entries.map(({ value }) => Buffer.from(value).toString())
    expect(values.filter((value) => value.includes('🏔","140"]'))).toHaveLength(1)
    await roundTrip(platform.store)
  })

  test('in two parts, whose texts share one hash', async () => {
    const platform = await createTestPlatform()
    const others = (from: string) => Array.from({ length: 1200 }, (_, at) => [`${from}${at}`, 1])
    const schema = (names: readonly string[], from: string) => {
      return { type: 'object', properties: Object.fromEntries([...names.map((name) => [name, {}]), ...others(from)]) }
    }
    const tool = { name: 't', inputSchema: schema(oneHash.slice(0, 8), 'a') }
    expect(await put(platform, '/servers/ada/s', { displayName: 'S', tools: [tool] })).toBe(201)
    const { connections } = server(schema(oneHash.slice(8, 16), 'b'))
    expect(await put(platform, '/servers/ada/s', { displayName: 'S', connections })).toBe(201)
    await roundTrip(platform.store)
  })
})

test('what a server says of itself, with half of a character', async () => {
  await using upstream = localServer(async (request) => {
    const { id } = (await request.json()) as { id?: number }
    const serverInfo = '{"name":"far","version":"1","title":"half \\ud83d pair"}'
    const result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":${serverInfo}}`
    const headers = { 'content-type': 'application/json' }
    return id === undefined
      ? new Response(null, { status: 202 })
      : new Response(`{"jsonrpc":"2.0","id":${id},"result":${result}}`, { headers })
  })
  const platform = await createTestPlatform({ upstream: localUpstream() })
  await connectTo(platform, 'far', upstream.url.href)
  const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  expect(entries.some(({ value }) => Buffer.from(value).includes('half \\ud83d pair'))).toBe(true)
  await roundTrip(platform.store)
})

describe('an import', () => {
  const pepper = Buffer.alloc(32)
  const made = async (store: Store, userId = 'ada') => {
    const { puts, record } = makeApiKey(pepper, {
      key: 'a-key-of-both-instances-000000000',
      userId,
      name: null,
      operator: true,
      now: new Date(startOfTime),
    })
    await store.commit({ puts })
    return record.keyId
  }
  const keysIn = async (store: Store) =>
    (await entriesOf(store)).flatMap(({ key, value }) => {
      const parsed = parseKey(key)
      return parsed?.kind === 'apiKey' ? [[parsed.keyId, JSON.parse(Buffer.from(value).toString()).revokedAt]] : []
    })

  test('of a key that is here under another id leaves one, which stays revoked', async () => {
    for (const isRevoked of [false, true]) {
      const [from, to] = [openMemoryStore(), openMemoryStore()]
      const [imported, own] = [await made(from), await made(to)]
      if (isRevoked) await revokeApiKey(to, own, new Date(startOfTime))
      await move(from, to)
      expect(await keysIn(to)).toEqual([[imported, isRevoked ? new Date(startOfTime).toISOString() : null]])
      expect(await roundTrip(to)).toBe(1)
    }
  })

  test('keeps what was accepted of a server', async () => {
    const platform = await createTestPlatform()
    const ref = { namespace: 'ada', connectionId: 'pinned' }
    const connection = { ...pickConnection(random(1), 'pinned') }
    const { id, text } = drained(writingPins({ ...noPins, tools: new Map([['t', { accepted: 'a', present: 'b' }]]) }))
    const privatePart = { pins: { bytes: Buffer.byteLength(text), id } }
    const change = connectionChange(ref, undefined, { connection, privatePart })
    const pins = { key: keyOf('pins', 'ada', 'pinned'), value: Buffer.from(text) }
    await platform.store.commit({ ...change, puts: [...(change.puts ?? []), pins] })
    const other = openMemoryStore()
    await move(platform.store, other)
    expect((await findConnection(other, 'ada', 'pinned'))?.privatePart.pins).toEqual(privatePart.pins)
    expect(Buffer.from((await other.get(pins.key)) ?? []).toString()).toBe(text)
    await roundTrip(platform.store)
  })
})

describe('fixtures that go', () => {
  const key = 'a-key-of-at-least-32-characters-0'
  const world = (userId: string, more: object = {}) => [
    source('a.json', {
      namespaces: [{ namespace: 'shop', userId, createdAt: '2026-01-01T00:00:00.000Z' }],
      apiKeys: [{ userId: 'fay', key }],
      ...more,
    }),
  ]
  const load = async (store: Store, sources: ReturnType<typeof world>, time = startOfTime) => {
    const options = { pepper: Buffer.alloc(32), now: new Date(time), log: silent }
    return loadFixtures(store, (await readFixtures(sources)).fixtures, JSON.stringify(time), options)
  }

  test('and the key that was revoked', async () => {
    const store = openMemoryStore()
    await load(store, world('fay'))
    const { entries } = await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
    const [keyId = ''] = entries.flatMap(({ key }) => {
      const parsed = parseKey(key)
      return parsed?.kind === 'apiKey' ? [parsed.keyId] : []
    })
    await revokeApiKey(store, keyId, new Date(startOfTime))
    await load(store, world('fay', { apiKeys: [] }))
    expect(await roundTrip(store)).toBe(2)
  })

  test('and the namespace with a view that was made over HTTP: it stays, with its owner', async () => {
    const platform = await createTestPlatform({ sources: world('fay') })
    const init = {
      method: 'PUT',
      headers: bearer(key),
      body: JSON.stringify({ policy: [{ resources: 'connections' }], title: 'Mine' }),
    }
    expect((await platform.fetch('/namespaces/shop/views/mine', init)).status).toBe(201)
    await load(platform.store, [source('b.json', {})])
    await roundTrip(platform.store)
    await load(platform.store, world('fay'))
    await expect(load(platform.store, world('gil'))).rejects.toThrow('was made over HTTP and belongs to user fay')
  })

  test('and the member of an organization, after a move to another folder', async () => {
    const organization = (members: object[]) => [
      source('a.json', { organizations: [{ organizationId: 'org', name: 'Org', members }] }),
    ]
    const [ada, grace] = ['ada', 'grace'].map((userId) => ({ userId, role: 'owner' })) as [object, object]
    const [store, other] = [openMemoryStore(), openMemoryStore()]
    await load(store, organization([ada, grace]))
    await move(store, other)
    await load(other, organization([ada, grace]), startOfTime + 1)
    await load(other, organization([ada]), startOfTime + 2)
    expect(await other.get(keyOf('member', 'org', 'ada'))).toBeDefined()
    expect(await other.get(keyOf('member', 'org', 'grace'))).toBeUndefined()
  })

  test('and the namespace with a server that was made over HTTP is for no other owner', async () => {
    const platform = await createTestPlatform({ sources: world('fay') })
    const body = JSON.stringify({ displayName: 'S', connections: [] })
    const init = { method: 'PUT', headers: bearer(key), body }
    expect((await platform.fetch('/servers/shop/s', init)).status).toBe(201)
    await expect(load(platform.store, world('gil'))).rejects.toThrow('a server in shop was made over HTTP')
    await roundTrip(platform.store)
  })

  test('and the namespace that another owner gets: no link of before leads to it, and no call of before is theirs', async () => {
    const platform = await createTestPlatform({
      sources: world('fay', {
        namespaces: [{ namespace: 'shop', userId: 'fay', createdAt: '2026-01-01T00:00:00.000Z', registry: 'members' }],
      }),
    })
    const init = { method: 'POST', headers: bearer(key), body: JSON.stringify({ name: 'editor' }) }
    const made = (await (await platform.fetch('/namespaces/shop/registry-links', init)).json()) as { url: string }
    const read = async () => (await platform.fetch(`${new URL(made.url).pathname}/v0.1/servers`)).status
    expect(await read()).toBe(200)
    await load(platform.store, world('gil'), startOfTime + 1000)
    expect(await read()).toBe(404)
    await load(platform.store, world('gil'), startOfTime + 2000)
    const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
    const found = entries.find(({ key }) => parseKey(key)?.kind === 'namespace')
    expect(JSON.parse(Buffer.from(found?.value ?? []).toString())).toMatchObject({
      userId: 'gil',
      createdAt: new Date(startOfTime + 1000).toISOString(),
    })
  })
})
