import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { fixtureProblemsText } from '../../../src/cli/check-command.ts'
import { completeConnection } from '../../../src/maintenance/seed/complete.ts'
import { isLoaded, loadFixtures } from '../../../src/maintenance/seed/load-fixtures.ts'
import { type Fixtures, readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import { digestOf, findFixtureFiles, type SourceFile, sourceFile } from '../../../src/maintenance/seed/source-files.ts'
import type { Connection } from '../../../src/model/connection.ts'
import { connectionChange, connectionEntry, indexEntries, readConnection } from '../../../src/storage/connections.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { seed, silent, source } from '../../support/platform.ts'
import cases from './problems.json' with { type: 'json' }

const folder = resolve(import.meta.dir, '../../../fixtures')
const pepper = seed('pepper')
const march = new Date('2026-03-02T09:00:00.000Z')
const april = new Date('2026-04-02T09:00:00.000Z')

async function load(store: Store, sources: readonly SourceFile[], now = march, log = silent) {
  const { fixtures, problems } = await readFixtures(sources)
  expect(problems).toEqual([])
  return loadFixtures(store, fixtures, digestOf(sources), { pepper, now, log })
}

function connectionsOf({ connections }: Fixtures): Connection[] {
  return [...connections.inOrder()].map(({ value }) =>
    completeConnection(JSON.parse(Buffer.from(value).toString()), march.toISOString()),
  )
}

async function dump(store: Store): Promise<string[]> {
  const { entries } = await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  // Generations are new with every load.
  const lasting = entries.filter(({ key }) => !'gGSbE'.includes(String.fromCharCode(key[0] ?? 0)))
  return lasting.map(({ key, value }) => `${Buffer.from(key).toString('latin1')} ${Buffer.from(value).toString()}`)
}

describe('the sample fixtures', () => {
  test('have no problem', async () => {
    expect((await readFixtures(findFixtureFiles([folder]).map(sourceFile))).problems).toEqual([])
  })

  test('are all inside the executable, as they are in the folder', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
    const carried = sampleSources()
    expect(carried.map(({ file }) => file.split('/').at(-1) ?? '').sort()).toEqual(files.sort())
    for (const { file, read } of carried) {
      const original = sourceFile(resolve(folder, file.split('/').at(-1) ?? '')).read()
      expect(JSON.parse(Buffer.from(read()).toString())).toEqual(JSON.parse(Buffer.from(original).toString()))
    }
  })

  test('show what a platform can hold', async () => {
    const { fixtures } = await readFixtures(sampleSources())
    const records = connectionsOf(fixtures)
    expect(fixtures.organizations.length).toBe(2)
    expect(fixtures.servers.length).toBeGreaterThanOrEqual(6)
    expect(fixtures.servers.some(({ qualifiedName }) => !qualifiedName.includes('/'))).toBe(true)
    expect(records.length).toBeGreaterThanOrEqual(40)
    expect(new Set(records.map(({ status }) => status.state)).size).toBe(5)
    expect(records.filter(({ mock }) => mock?.enabled === true).length).toBeGreaterThanOrEqual(8)
    expect(new Set(fixtures.servers.flatMap((server) => server.connections.map(({ type }) => type)))).toEqual(
      new Set(['stdio', 'http']),
    )
  })
})

describe('problems', () => {
  for (const { because, files, problems } of cases) {
    test(because, async () => {
      const sources = Object.entries(files).map(([file, document]) => source(file, document))
      const found = (await readFixtures(sources)).problems
      if (typeof problems === 'number') expect({ found, count: found.length }).toEqual({ found, count: problems })
      else expect(fixtureProblemsText(found).split('\n').slice(0, -1)).toEqual(problems)
    })
  }

  test('what is not UTF-8 is told', async () => {
    const { problems } = await readFixtures([{ file: 'a.json', read: () => Buffer.from([0x7b, 0xff, 0x7d]) }])
    expect(problems).toEqual([{ file: 'a.json', place: '', message: 'is not UTF-8, or begins with a byte order mark' }])
  })
})

const base = { namespaces: [{ namespace: 'n', userId: 'u' }] }
const connection = (connectionId: string, more: object = {}) => ({
  namespace: 'n',
  connectionId,
  mcpUrl: 'https://x.example.com/mcp',
  ...more,
})
const set = (...connections: object[]) => [source('a.json', { ...base, connections })]
const stored = async (store: Store, id: string): Promise<Connection | undefined> => {
  const bytes = await store.get(keyOf('connection', 'n', id))
  return bytes === undefined ? undefined : readConnection(bytes)
}

describe('loading', () => {
  test('is idempotent: a second load leaves every record and index as it was', async () => {
    const store = openMemoryStore()
    await load(store, sampleSources())
    const before = await dump(store)
    expect(await isLoaded(store, digestOf(sampleSources()))).toBe(true)
    await load(store, sampleSources(), april)
    expect(await dump(store)).toEqual(before)
  })

  test('of one set after another leaves what a first load of it would', async () => {
    const store = openMemoryStore()
    const fresh = openMemoryStore()
    const other = set(connection('a', { name: 'changed', createdAt: '2026-01-01T00:00:00Z' }))
    await load(store, sampleSources())
    await load(store, other)
    await load(fresh, other)
    expect(await dump(store)).toEqual(await dump(fresh))
  })

  test('fills in what a connection leaves out; createdAt is the first load', async () => {
    const store = openMemoryStore()
    await load(store, set(connection('a')))
    expect(await stored(store, 'a')).toEqual({
      connectionId: 'a',
      name: 'a',
      mcpUrl: 'https://x.example.com/mcp',
      metadata: null,
      transport: 'http',
      createdAt: march.toISOString(),
      status: { state: 'connected' },
    })
    await load(store, set(connection('a', { metadata: { team: 'x' } })), april)
    expect(await stored(store, 'a')).toMatchObject({ createdAt: march.toISOString(), metadata: { team: 'x' } })
  })

  test('a record goes when its fixture does, and its index with it', async () => {
    const store = openMemoryStore()
    await load(store, set(connection('a'), connection('b')))
    expect(await load(store, set(connection('b')))).toMatchObject({ connections: 1, removed: 1 })
    expect([await stored(store, 'a'), (await stored(store, 'b'))?.connectionId]).toEqual([undefined, 'b'])
    expect((await dump(store)).filter((line) => line.startsWith('x')).length).toBe(2)
  })

  test('a record written at run time stays; one that a fixture replaces is told', async () => {
    const store = openMemoryStore()
    const given = set(connection('mine', { createdAt: '2026-01-01T00:00:00Z' }))
    const [record] = connectionsOf((await readFixtures(given)).fixtures) as [Connection]
    await store.commit({ puts: [connectionEntry('n', record), ...indexEntries('n', record)] })
    const told: object[] = []
    const log = { ...silent, warn: (_: string, fields: object = {}) => void told.push(fields) }
    await load(store, set(connection('other')), march, log)
    await load(store, set(), march, log)
    expect([(await stored(store, 'mine'))?.name, told]).toEqual(['mine', []])
    await load(store, set(connection('mine', { name: 'theirs' })), march, log)
    expect([(await stored(store, 'mine'))?.name, told]).toEqual(['theirs', [{ record: 'connection n/mine' }]])
  })

  test('a revoked key of a fixture stays revoked', async () => {
    const store = openMemoryStore()
    const keys = (name: string) => [
      source('keys.json', { apiKeys: [{ userId: 'u', name, key: 'a-key-of-at-least-32-characters-0' }] }),
    ]
    await load(store, keys('first'))
    const { keys: found } = await store.keys({ gte: keyOf('apiKey', ''), lt: keyOf('apiKey', '~'), limit: 10 })
    const keyId = Buffer.from(found[0] ?? '')
      .toString()
      .slice(1)
    await revokeApiKey(store, keyId, march)
    await load(store, keys('second'))
    const record = JSON.parse(Buffer.from((await store.get(keyOf('apiKey', keyId))) ?? '').toString())
    expect(record).toMatchObject({ name: 'second', revokedAt: march.toISOString() })
  })

  test('a revoked key stays revoked even when its fixture goes and comes back', async () => {
    const store = openMemoryStore()
    const keys = [source('keys.json', { apiKeys: [{ userId: 'u', key: 'a-key-of-at-least-32-characters-0' }] })]
    await load(store, keys)
    const { keys: found } = await store.keys({ gte: keyOf('apiKey', ''), lt: keyOf('apiKey', '~'), limit: 10 })
    const record = keyOf(
      'apiKey',
      Buffer.from(found[0] ?? '')
        .toString()
        .slice(1),
    )
    await revokeApiKey(store, Buffer.from(record).toString().slice(1), march)
    await load(store, set(connection('a')))
    await load(store, keys)
    expect(JSON.parse(Buffer.from((await store.get(record)) ?? '').toString()).revokedAt).toBe(march.toISOString())
  })

  test('the server of a connection follows its fixture, though nothing of it is public', async () => {
    const store = openMemoryStore()
    const server = (qualifiedName: string) => ({
      qualifiedName,
      displayName: '',
      description: '',
      remote: true,
      connections: [],
    })
    const servers = [server('n/one'), server('n/two')]
    const of = (more: object) => [source('a.json', { ...base, servers, connections: [connection('a', more)] })]
    const named = async () => Buffer.from((await store.get(keyOf('connectionPrivate', 'n', 'a'))) ?? '').toString()
    await load(store, of({}))
    expect(await named()).toBe('')
    for (const name of ['n/one', 'n/two']) {
      const before = await store.get(keyOf('connectionsVersion', 'n'))
      await load(store, of({ server: name }))
      expect(await named()).toBe(JSON.stringify({ server: name }))
      // Whoever remembers the connection looks again.
      expect(await store.get(keyOf('connectionsVersion', 'n'))).not.toEqual(before as never)
    }
    await load(store, of({}))
    expect(await named()).toBe('')
  })

  test('what people gave to a connection stays until its fixture points elsewhere, and used tickets stay used', async () => {
    const store = openMemoryStore()
    const servers = ['n/one', 'n/two'].map((qualifiedName) => ({
      ...{ qualifiedName, displayName: '', description: '', remote: true, connections: [] },
    }))
    const warned: object[] = []
    const log = { ...silent, warn: (event: string, fields: object = {}) => void warned.push({ event, ...fields }) }
    const loadOf = (...connections: object[]) =>
      load(store, [source('a.json', { ...base, servers, connections })], march, log)
    const key = keyOf('connectionPrivate', 'n', 'a')
    const privatePart = async () => JSON.parse(Buffer.from((await store.get(key)) ?? '{}').toString())
    const given = { server: 'n/one', headers: 'sealed', tokens: 'sealed', setups: 3 }
    const give = () => store.commit({ puts: [{ key, value: Buffer.from(JSON.stringify(given)) }] })
    const a = { ...connection('a'), server: 'n/one' }

    await loadOf(a)
    expect(await privatePart()).toEqual({ server: 'n/one' })
    await give()
    await loadOf(a, connection('b'))
    await loadOf({ ...a, name: 'Another', metadata: { x: '1' } }, connection('b'))
    expect([await privatePart(), warned]).toEqual([given, []])
    const elsewhere = { ...a, mcpUrl: 'https://other.example.com/mcp' }
    for (const [moved, left] of [
      [elsewhere, { server: 'n/one', setups: 4 }],
      [
        { ...a, server: 'n/two' },
        { server: 'n/two', setups: 4 },
      ],
      [connection('a'), { setups: 4 }],
    ]) {
      await loadOf(a)
      await give()
      warned.length = 0
      await loadOf(moved as object)
      expect(await privatePart()).toEqual(left)
      expect(warned).toEqual([{ event: expect.stringContaining('point elsewhere'), connections: 1, records: 'n/a' }])
    }
    // Where nobody has given anything, nobody is told; a sign-in that has begun is void all the same.
    await loadOf()
    await loadOf(a)
    warned.length = 0
    await loadOf(elsewhere)
    expect([await privatePart(), warned]).toEqual([{ server: 'n/one', setups: 1 }, []])
  })

  test('another owner of a namespace gets nothing that people gave to its connections, and no time of before', async () => {
    const store = openMemoryStore()
    const warned: object[] = []
    const log = { ...silent, warn: (event: string, fields: object = {}) => void warned.push({ event, ...fields }) }
    const key = keyOf('connectionPrivate', 'n', 'a')
    const loadOf = (userId: string, at: Date) => {
      const world = { namespaces: [{ namespace: 'n', userId }], connections: [connection('a')] }
      return load(store, [source('a.json', world)], at, log)
    }
    const april = new Date(march.getTime() + 31 * 24 * 3600 * 1000)
    await loadOf('fay', march)
    const given = { headers: 'sealed', tokens: 'sealed', input: 'sealed', setups: 3 }
    await store.commit({ puts: [{ key, value: Buffer.from(JSON.stringify(given)) }] })
    const times = async () => [
      (await stored(store, 'a'))?.createdAt,
      JSON.parse(Buffer.from((await store.get(keyOf('namespace', 'n'))) ?? '{}').toString()).createdAt,
    ]
    const before = String(await store.get(key))
    await loadOf('fay', april)
    expect([String(await store.get(key)), warned]).toEqual([before, []])
    expect(await times()).toEqual([march.toISOString(), march.toISOString()])
    await loadOf('gil', april)
    expect(JSON.parse(Buffer.from((await store.get(key)) ?? '').toString())).toEqual({ setups: 4 })
    expect(await times()).toEqual([april.toISOString(), april.toISOString()])
    expect(warned).toMatchObject([{ event: expect.stringContaining('another owner'), records: 'n/a' }])
  })

  for (const [what, next] of [
    ['gets another owner', { namespaces: [{ namespace: 'n', userId: 'gil' }] }],
    ['goes', {}],
  ] as const)
    test(`a connection that is made while its namespace ${what} is for nobody else`, async () => {
      const store = openMemoryStore()
      const world = (more: object) => [source('a.json', { namespaces: [{ namespace: 'm', userId: 'u' }], ...more })]
      await load(store, world({ namespaces: [{ namespace: 'n', userId: 'fay' }] }))
      const ended = keyOf('endedNamespace', 'n')
      const before = await store.get(ended)
      let isMade = false
      const racing: Store = {
        ...store,
        async load(write) {
          if (!isMade) {
            isMade = true
            const ref = { namespace: 'n', connectionId: 'fays' }
            const made = { ...completeConnection(connection('fays') as never, march.toISOString()) }
            await store.commit(
              connectionChange(ref, undefined, { connection: made, privatePart: { headers: 'sealed' } }),
            )
          }
          return store.load(write)
        },
      }
      const loaded = load(racing, world(next)).then(
        () => 'loaded',
        (error: Error) => error.message,
      )
      // The namespace stays with its owner, whether the load is refused or leaves it alone.
      expect(await loaded).toMatch(what === 'goes' ? /loaded/ : /a connection in n was/)
      const owner = JSON.parse(Buffer.from((await store.get(keyOf('namespace', 'n'))) ?? '{}').toString()).userId
      expect([owner, isMade]).toEqual(['fay', true])
      // A write that was authorized before a load that succeeds is not committed after it.
      const quiet = openMemoryStore()
      await load(quiet, world({ namespaces: [{ namespace: 'n', userId: 'fay' }] }))
      const was = await quiet.get(ended)
      await load(quiet, world(next))
      expect([before, was]).toEqual([undefined, undefined])
      expect(await quiet.get(ended)).toBeDefined()
    })

  test('a load that another write overtakes looks again', async () => {
    const store = openMemoryStore()
    let races = 1
    const racing: Store = {
      ...store,
      async load(write) {
        if (races-- > 0) await revokeApiKey(store, 'nothing', march).then(() => load(store, set(connection('theirs'))))
        return store.load(write)
      },
    }
    await load(racing, set(connection('mine')))
    expect([(await stored(store, 'mine'))?.connectionId, await stored(store, 'theirs')]).toEqual(['mine', undefined])
  })
})
