/** Many writers of one connection: each is decided in its turn, so that they cost as much as one after the other. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { changeSigningKeys } from '../../../src/auth/signing-keys.ts'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { writeAttemptsMax } from '../../../src/storage/decide-again.ts'
import { openPostgresStore } from '../../../src/storage/postgres/store.ts'
import { type Store, StoreError, type Write } from '../../../src/storage/store.ts'
import { UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { isHere } from '../../support/needs.ts'
import { createTestPlatform, keyIdOf, problemsOf, seed, type TestPlatform } from '../../support/platform.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../../support/postgres.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'

const path = '/connect/ada/one'
const ada = (platform: TestPlatform) => apiOf(platform.fetch, sampleKeys.ada)
const mocked = (metadata: object) => ({ server: 'lumen', mock: { enabled: true }, metadata })
const settled = async () => {
  for (let turns = 0; turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A store whose commits are counted, and answered by `instead` if that returns something. */
function watched(store: Store, instead: (write: Write) => ReturnType<Store['commit']> | undefined = () => undefined) {
  const state = { commits: 0 }
  const counted: Store = {
    ...store,
    commit(write) {
      state.commits += 1
      return instead(write) ?? store.commit(write)
    },
  }
  return { state, store: counted }
}

async function writeAtOnce(store: Store): Promise<void> {
  const { state, store: counted } = watched(store)
  const platform = await createTestPlatform({ store: counted })
  state.commits = 0
  const writes = Array.from({ length: 200 }, (_, number) => ada(platform)(`PUT ${path}`, mocked({ number })))
  const statuses = (await Promise.all(writes)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 201)).toHaveLength(1)
  expect(statuses.filter((status) => status === 200)).toHaveLength(199)
  expect(state.commits).toBe(200)
  expect(await problemsOf(platform)).toEqual([])
}

test('200 writes at once are 200 commits', () => writeAtOnce(openMemoryStore()))

describe.skipIf(!isHere('PostgreSQL'))('on PostgreSQL (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  test('200 writes at once are 200 commits', async () => {
    const store = await openPostgresStore({ address: addressOf(await cluster.newDatabase()), mayMigrate: true })
    await writeAtOnce(store)
    await store.close()
  })
})

test('a connection that is written again waits for no other that is', async () => {
  const commits = { one: 0, two: 0 }
  const held = Promise.withResolvers<never>()
  const { store } = watched(openMemoryStore(), (write) => {
    const key = [...(write.puts ?? [])].find(({ key }) =>
      /[^a-z](one|two)$/.test(Buffer.from(key).toString('latin1')),
    )?.key
    if (key === undefined) return undefined
    const name = Buffer.from(key).toString('latin1').endsWith('one') ? 'one' : 'two'
    commits[name] += 1
    // Somebody was faster; and then the store takes its time with one of them.
    if (commits[name] === 1) return Promise.resolve({ ok: false, conflicts: [key], full: [] })
    return name === 'one' ? held.promise : undefined
  })
  const platform = await createTestPlatform({ store })
  const first = ada(platform)('PUT /connect/ada/one', mocked({}))
  await settled()
  expect((await ada(platform)('PUT /connect/ada/two', mocked({}))).status).toBe(201)
  // The first may wait for its owner's time.
  await until(() => commits.one === 2)
  expect(commits).toEqual({ one: 2, two: 2 })
  held.reject(new StoreError('unavailable', 'it is away'))
  expect((await first).status).toBe(503)
})

test('a server that takes its time to answer a probe keeps no other write waiting, and is asked once', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<never>()
  let probes = 0
  const platform = await createTestPlatform({
    upstream: {
      send() {
        probes += 1
        asked.resolve()
        return answer.promise
      },
    },
  })
  const api = ada(platform)
  const slow = api(`PUT ${path}`, { mcpUrl: 'https://slow.example/mcp' })
  await asked.promise
  expect((await api(`PUT ${path}`, mocked({ a: '1' }))).status).toBe(201)
  expect((await api(`PUT ${path}`, mocked({ a: '2' }))).status).toBe(200)
  expect((await api(`DELETE ${path}`)).status).toBe(200)
  answer.reject(new UpstreamError('down', 'there is nothing here'))
  const { status, body } = await slow
  expect([status, body.status.state]).toEqual([201, 'error'])
  // Of one probe: a server that cannot be reached is not asked in another way.
  expect(probes).toBe(1)
})

test('a deletion is done before the writes that wait', async () => {
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  let isOpen = true
  let isFirstDeletion = true
  const memory = openMemoryStore()
  const { store } = watched(memory, (write) => {
    if (isOpen) return undefined
    const isDeletion = write.fromReserve === 'deletion'
    order.push(isDeletion ? 'delete' : 'put')
    if (!isDeletion) return gate.promise.then(() => memory.commit(write))
    if (!isFirstDeletion) return undefined
    // Another replica was first.
    isFirstDeletion = false
    return Promise.resolve({ ok: false, conflicts: [], full: [] })
  })
  const api = ada(await createTestPlatform({ store }))
  await api(`PUT ${path}`, mocked({ number: 0 }))
  isOpen = false
  const writes = [1, 2, 3, 4].map((number) => api(`PUT ${path}`, mocked({ number })))
  // A busy machine takes its time until the first of them is being written.
  while (order.length < 1) await settled()
  const deletion = api(`DELETE ${path}`)
  while (order.length < 2) await settled()
  expect(order).toEqual(['put', 'delete'])
  gate.resolve()
  expect((await deletion).status).toBe(200)
  expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([200, 201, 200, 200])
  expect(order).toEqual(['put', 'delete', 'delete', 'put', 'put', 'put'])
})

test('deletions that waited for their turn are not done once their token is revoked', async () => {
  const gate = Promise.withResolvers<void>()
  let [held, isOpen] = [0, true]
  const memory = openMemoryStore()
  const { store } = watched(memory, (write) => {
    if (isOpen || write.fromReserve !== 'deletion') return undefined
    held += 1
    return gate.promise.then(() => memory.commit(write))
  })
  const platform = await createTestPlatform({ store })
  const paths = Array.from({ length: 20 }, (_, number) => `/connect/ada/c${number}`)
  await Promise.all(paths.map((one) => ada(platform)(`PUT ${one}`, mocked({}))))
  const token = await mintToken(platform.fetch, sampleKeys.ada)
  const { jti, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  isOpen = false
  const deletions = paths.map((one) => apiOf(platform.fetch, token)(`DELETE ${one}`))
  // As many as one owner may have decided at once.
  await until(() => held === 8)
  isOpen = true
  await revokeToken(platform.store, jti, { exp, nowSeconds: platform.now / 1000 })
  gate.resolve()
  const statuses = (await Promise.all(deletions)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(8)
  expect(statuses.filter((status) => status === 401)).toHaveLength(12)
})

test('headers without a URL are for the connection as it was, and not for one of its name', async () => {
  const asked: { url: string; secret: unknown; end: () => void }[] = []
  const platform = await createTestPlatform({
    upstream: {
      send({ url, headers }) {
        const { promise, reject } = Promise.withResolvers<never>()
        const secret = (headers as Record<string, string>)['x-secret']
        asked.push({ url, secret, end: () => reject(new UpstreamError('down', 'there is nothing here')) })
        return promise
      },
    },
  })
  const api = ada(platform)
  const probed = async (answer: ReturnType<typeof api>) => {
    const before = asked.length
    await until(() => asked.length > before)
    asked.at(-1)?.end()
    return answer
  }
  await probed(api(`PUT ${path}`, { mcpUrl: 'https://one.example/mcp' }))
  const secret = api(`PUT ${path}`, { headers: { 'x-secret': 'of the first' } })
  await until(() => asked.length === 2)
  await api(`DELETE ${path}`)
  platform.now += 1000
  expect(await probed(api(`PUT ${path}`, { mcpUrl: 'https://evil.example/mcp' }))).toMatchObject({ status: 201 })
  asked[1]?.end()
  expect(await secret).toMatchObject({ status: 409, body: { error: 'conflict' } })
  expect(asked.map(({ url, secret }) => [url, secret])).toEqual([
    ['https://one.example/mcp', undefined],
    ['https://one.example/mcp', 'of the first'],
    ['https://evil.example/mcp', undefined],
  ])
})

describe('where others always come first, a write ends after some attempts', () => {
  /** What is done to a store whose commits all conflict, and how often it is tried. */
  const attemptsOf = async (act: (platform: TestPlatform) => Promise<unknown>) => {
    let isContended = false
    const { state, store } = watched(openMemoryStore(), () =>
      isContended ? Promise.resolve({ ok: false, conflicts: [], full: [] }) : undefined,
    )
    const platform = await createTestPlatform({ store })
    await ada(platform)(`PUT ${path}`, mocked({}))
    isContended = true
    state.commits = 0
    const result = await act(platform).catch((error: Error) => error.message)
    return { result, commits: state.commits }
  }
  const requests: [string, object?][] = [
    [`PUT ${path}`, mocked({ a: '1' })],
    ['PUT /connect/ada/another', mocked({})],
    ['POST /connect/ada', mocked({})],
  ]
  for (const [request, body] of requests) {
    test(request, async () => {
      const { result, commits } = await attemptsOf((platform) => ada(platform)(request, body))
      expect([result, commits]).toMatchObject([{ status: 503, body: { error: 'unavailable' } }, writeAttemptsMax])
    })
  }

  test('a deletion', async () => {
    const { result, commits } = await attemptsOf((platform) => ada(platform)(`DELETE ${path}`))
    expect([result, commits]).toMatchObject([{ status: 503 }, writeAttemptsMax + 1])
  })

  test('the revocation of a key', async () => {
    const { result, commits } = await attemptsOf(async (platform) =>
      revokeApiKey(platform.store, await keyIdOf(platform, 'ada'), new Date(platform.now)),
    )
    expect([result, commits]).toEqual([expect.stringContaining('changes too fast'), writeAttemptsMax])
  })

  test('a change of the signing keys', async () => {
    const { result, commits } = await attemptsOf(({ store }) =>
      changeSigningKeys(store, seed('sealing key'), (records) => [...(records ?? [])]),
    )
    expect([result, commits]).toEqual([expect.stringContaining('changes too fast'), writeAttemptsMax])
  })
})

test('a write of much metadata waits for its owner’s time before it takes a place; one of a little does not', async () => {
  const waits: number[] = []
  class Noted extends Paces {
    override async pause(_: string, milliseconds = 0): Promise<void> {
      if (milliseconds > 0) waits.push(milliseconds)
    }
  }
  const platform = await createTestPlatform({ fairness: { ...createFairness(), time: new Noted() } })
  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
  expect((await ada(platform)(`PUT ${path}`, mocked(pairs(8)))).status).toBe(201)
  expect(waits).toEqual([])
  for (const request of [`PUT ${path}`, 'POST /connect/ada'])
    expect((await ada(platform)(request, mocked(pairs(64)))).status).toBeLessThan(300)
  expect(waits.map((wait) => Math.round(wait))).toEqual([10, 10])
  // A write that contacts its server is decided again when that has answered, and is counted once.
  const far = { mcpUrl: 'https://far.example.com/mcp', metadata: pairs(64) }
  for (const request of ['PUT /connect/ada/far', 'POST /connect/ada'])
    expect((await ada(platform)(request, far)).status).toBe(201)
  expect(waits.map((wait) => Math.round(wait))).toEqual([10, 10, 10, 10])
})
