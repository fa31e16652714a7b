import { describe, expect, test } from 'bun:test'
import { Slices } from '../../../src/fairness/slices.ts'
import { Turns } from '../../../src/fairness/turns.ts'
import { planOf } from '../../../src/features/connections/plan.ts'
import type { Connection } from '../../../src/model/connection.ts'
import type { LocalReads, Store } from '../../../src/storage/store.ts'
import { mintToken } from '../../api/cases.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { expectedIds, idsOf, key, pickConnection, pickFilters, pickPolicy, skeleton, walk, write } from './world.ts'

const seeds =
  process.env['SEED'] === undefined ? Array.from({ length: 16 }, (_, i) => i + 1) : [Number(process.env['SEED'])]

describe('a list is what the oracle says', () => {
  for (const [seed, fastLane] of seeds.flatMap((one) => [[one, true] as const, [one, false] as const])) {
    const way = fastLane ? 'with the fast lane' : 'the ordinary way'
    test(`whatever the rows, the token and the query, ${way} (seed ${seed})`, async () => {
      const chance = random(seed)
      const platform = await createTestPlatform({ sources: [skeleton], fastLane })
      const rows = new Map<string, Connection>()
      const ids = idsOf(chance, 60)
      await write(platform.store, new Map(ids.map((id) => [id, pickConnection(chance, id)])), rows)
      for (let i = 0; i < 25; i += 1) {
        const policy = pickPolicy(chance, ids)
        const token = policy.length === 0 ? key : await mintToken(platform.fetch, key, { policy })
        const filters = pickFilters(chance)
        const limit = 1 + chance.int(9)
        const { ids: found, pages } = await walk(platform, token, filters, () => limit)
        expect({ policy, filters, found }).toEqual({ policy, filters, found: expectedIds(rows, filters, policy) })
        // Every page but the last is full.
        expect(pages.slice(0, -1).every((length) => length === limit)).toBe(true)
      }
    })
  }
})

describe('a walk sees each row that was there throughout exactly once', () => {
  for (const seed of seeds.slice(0, 12)) {
    test(`while rows come, go and change (seed ${seed})`, async () => {
      const chance = random(1000 + seed)
      const platform = await createTestPlatform({ sources: [skeleton] })
      const rows = new Map<string, Connection>()
      const ids = idsOf(chance, 80)
      await write(platform.store, new Map(ids.map((id) => [id, pickConnection(chance, id)])), rows)
      const policy = pickPolicy(chance, ids)
      const token = policy.length === 0 ? key : await mintToken(platform.fetch, key, { policy })
      const filters = chance.chance(0.5) ? {} : pickFilters(chance)
      const throughout = new Set(expectedIds(rows, filters, policy))
      const ever = new Set(throughout)
      const { ids: found } = await walk(
        platform,
        token,
        filters,
        () => 1 + chance.int(7),
        async () => {
          const id = chance.pick([...ids, ...idsOf(chance, 3)])
          await write(
            platform.store,
            new Map([[id, chance.chance(0.4) ? undefined : pickConnection(chance, id)]]),
            rows,
          )
          const now = new Set(expectedIds(rows, filters, policy))
          for (const one of throughout) if (!now.has(one)) throughout.delete(one)
          for (const one of now) ever.add(one)
        },
      )
      expect(found.length).toBe(new Set(found).size)
      for (const id of throughout) expect(found).toContain(id)
      for (const id of found) expect(ever.has(id)).toBe(true)
    })
  }
})

test('rows that change between index and record are looked at again', async () => {
  const store = openMemoryStore()
  const rows = new Map<string, Connection>()
  const chance = random(7)
  let beforeRecords: (() => Promise<void>) | undefined
  const racing: Store = {
    ...store,
    async getMany(keys) {
      const race = beforeRecords
      beforeRecords = undefined
      await race?.()
      return store.getMany(keys)
    },
  }
  const platform = await createTestPlatform({ store: racing, sources: [skeleton] })
  const row = (id: string, team: string): [string, Connection] => [
    id,
    { ...pickConnection(chance, id), metadata: { team } },
  ]
  await write(store, new Map([row('a', 'x'), row('b', 'x'), row('c', 'x')]), rows)
  const token = await mintToken(platform.fetch, key, { policy: [{ metadata: { team: 'x' } }] })
  beforeRecords = () => write(store, new Map([row('b', 'y')]), rows)
  expect((await walk(platform, token, {}, () => 100)).ids).toEqual(['a', 'c'])
  expect((await walk(platform, token, {}, () => 100)).ids).toEqual(['a', 'c'])
})

describe('a query that would examine more than 20,000 index entries', () => {
  test('gives short pages with cursors, and all rows in the end', async () => {
    const platform = await createTestPlatform({ sources: [skeleton] })
    const rows = new Map<string, Connection>()
    const base = pickConnection(random(1), 'x')
    const count = 30_000
    const changes = new Map<string, Connection>()
    for (let i = 0; i < count; i += 1) {
      const connectionId = String(i).padStart(6, '0')
      // The two terms never meet but at the very end, and lie so that each step examines one entry.
      const metadata = i === count - 1 ? { a: '1', b: '1' } : { [i % 2 === 0 ? 'a' : 'b']: '1' }
      changes.set(connectionId, { ...base, connectionId, metadata })
    }
    await write(platform.store, changes, rows)
    const { ids, pages } = await walk(platform, key, { 'metadata.a': '1', 'metadata.b': '1' }, () => 100)
    expect(ids).toEqual(['029999'])
    expect(pages).toEqual([0, 1])
    const disjoint = await mintToken(platform.fetch, key, {
      policy: [
        {
          metadata: [
            { a: '1', b: '2' },
            { a: '1', b: '1' },
          ],
        },
        { metadata: [{ b: '1' }, { connectionId: '000004' }] },
      ],
    })
    expect((await walk(platform, disjoint, {}, () => 100)).ids).toEqual(['029999'])
  })
})

test('a namespace of ten thousand hidden rows answers like an empty one', async () => {
  const platform = await createTestPlatform({ sources: [skeleton] })
  const base = pickConnection(random(1), 'x')
  const hidden = Array.from({ length: 10_000 }, (_, i): [string, Connection] => {
    const connectionId = `hidden-${i}`
    return [connectionId, { ...base, connectionId, name: connectionId, metadata: { team: 'x', env: `e${i % 3}` } }]
  })
  await write(platform.store, new Map(hidden), new Map())
  const answer = async (namespace: string, policy: object[], query = '') => {
    const token = await mintToken(platform.fetch, key, { policy })
    const response = await platform.fetch(`/connect/${namespace}${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    for (const header of ['x-request-id', 'etag']) response.headers.delete(header)
    return `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`
  }
  for (const policy of [
    [{ metadata: { team: 'other' } }],
    [{ metadata: { connectionId: 'nothing' } }],
    [{ metadata: { env: 'e0' } }, { metadata: { env: 'e1' } }],
    [{ metadata: [{ team: 'x', env: 'e9' }, { nothing: 'x' }] }],
  ]) {
    for (const query of ['', '?limit=1', '?metadata.team=x', '?name=hidden-1']) {
      expect(await answer('acme', policy, query)).toBe(await answer('other', policy, query))
    }
  }
})

describe('cursors', () => {
  const list = async (platform: TestPlatform, target: string, credential = key) => {
    const response = await platform.fetch(target, { headers: { authorization: `Bearer ${credential}` } })
    return {
      status: response.status,
      body: (await response.json()) as { nextCursor: string; error: string; connections: Connection[] },
    }
  }
  async function filled(): Promise<TestPlatform> {
    const platform = await createTestPlatform({ sources: [skeleton] })
    const chance = random(3)
    const rows = new Map<string, Connection>()
    const some = Array.from({ length: 20 }, (_, i): [string, Connection] => {
      const id = `secret-name-${String(i).padStart(2, '0')}`
      return [id, { ...pickConnection(chance, id), metadata: { team: 'x', env: 'y' } }]
    })
    await write(platform.store, new Map(some), rows)
    return platform
  }

  test('are bound to the namespace and the filters, not to their order or the limit', async () => {
    const platform = await filled()
    const { body } = await list(platform, '/connect/acme?limit=5&metadata.team=x&metadata.env=y')
    const cursor = encodeURIComponent(body.nextCursor)
    const statuses: [string, number][] = [
      [`/connect/acme?limit=5&metadata.team=x&metadata.env=y&cursor=${cursor}`, 200],
      [`/connect/acme?metadata[env]=y&cursor=${cursor}&metadata[team]=x&limit=7`, 200],
      [`/connect/acme?metadata.team=x&cursor=${cursor}`, 400],
      [`/connect/acme?cursor=${cursor}`, 400],
      [`/connect/acme?metadata.team=y&metadata.env=x&cursor=${cursor}`, 400],
      [`/connect/acme?metadata.team=x&metadata.env=y&name=z&cursor=${cursor}`, 400],
      [`/connect/other?metadata.team=x&metadata.env=y&cursor=${cursor}`, 400],
    ]
    for (const [target, expected] of statuses)
      expect({ target, ...(await list(platform, target)) }).toMatchObject({ target, status: expected })
  })

  test('any change to one is refused, and none shows an id', async () => {
    const platform = await filled()
    const { nextCursor } = (await list(platform, '/connect/acme?limit=5')).body
    expect(Buffer.from(nextCursor, 'base64url').toString('latin1')).not.toContain('secret-name')
    for (let at = 0; at < nextCursor.length; at += 1) {
      for (const other of ['A', 'z', '-']) {
        const changed = nextCursor.slice(0, at) + other + nextCursor.slice(at + 1)
        if (changed === nextCursor) continue
        expect({ at, other, status: (await list(platform, `/connect/acme?limit=5&cursor=${changed}`)).status }).toEqual(
          { at, other, status: 400 },
        )
      }
    }
    for (const changed of [
      `${nextCursor}=`,
      `${nextCursor}A`,
      nextCursor.slice(0, -4),
      'first',
      '-',
      `%20${nextCursor}`,
    ]) {
      expect((await list(platform, `/connect/acme?limit=5&cursor=${changed}`)).status).toBe(400)
    }
  })

  test('the policy is applied afresh on every page: a cursor of a wider token widens nothing', async () => {
    const platform = await filled()
    const { nextCursor } = (await list(platform, '/connect/acme?limit=5')).body
    const pinned = await mintToken(platform.fetch, key, { policy: [{ metadata: { connectionId: 'secret-name-17' } }] })
    const { body } = await list(platform, `/connect/acme?limit=5&cursor=${nextCursor}`, pinned)
    expect(body.connections.map(({ connectionId }) => connectionId)).toEqual(['secret-name-17'])
  })

  test('survive a restart: another instance with the same secret goes on', async () => {
    const first = await filled()
    const { nextCursor } = (await list(first, '/connect/acme?limit=5')).body
    const second = await createTestPlatform({ store: first.store, sources: [skeleton] })
    expect((await list(second, `/connect/acme?limit=1&cursor=${nextCursor}`)).body.connections[0]?.connectionId).toBe(
      'secret-name-05',
    )
  })
})

describe('ETag', () => {
  const get = (platform: TestPlatform, credential: string, etag?: string) =>
    platform.fetch('/connect/acme', {
      headers: { authorization: `Bearer ${credential}`, ...(etag !== undefined && { 'if-none-match': etag }) },
    })

  test('304 while nothing changed, 200 and another tag after a change; one tag a policy', async () => {
    const platform = await createTestPlatform({ sources: [skeleton] })
    const rows = new Map<string, Connection>()
    const chance = random(5)
    await write(platform.store, new Map([['a', pickConnection(chance, 'a')]]), rows)
    const etag = (await get(platform, key)).headers.get('etag') ?? ''
    const same = await get(platform, key, etag)
    expect([same.status, await same.text(), same.headers.get('etag')]).toEqual([304, '', etag])
    expect((await get(platform, key, `"x", W/${etag}`)).status).toBe(304)
    expect((await get(platform, key, '"x"')).status).toBe(200)
    const narrow = await mintToken(platform.fetch, key, { policy: [{ metadata: { connectionId: 'b' } }] })
    expect((await get(platform, narrow, etag)).status).toBe(200)
    await write(platform.store, new Map([['b', pickConnection(chance, 'b')]]), rows)
    expect((await get(platform, key, etag)).status).toBe(200)
  })

  test('of who sees some rows tells of those alone', async () => {
    const platform = await createTestPlatform({ sources: [skeleton] })
    const rows = new Map<string, Connection>()
    const chance = random(7)
    await write(platform.store, new Map([['a', pickConnection(chance, 'a')]]), rows)
    const narrow = await mintToken(platform.fetch, key, { policy: [{ metadata: { connectionId: 'a' } }] })
    const etag = (await get(platform, narrow)).headers.get('etag') ?? ''
    await write(platform.store, new Map([['b', pickConnection(chance, 'b')]]), rows)
    expect((await get(platform, narrow, etag)).status).toBe(304)
    await write(platform.store, new Map([['a', pickConnection(chance, 'a')]]), rows)
    expect((await get(platform, narrow, etag)).status).toBe(200)
  })

  test('of a page that a change overtook it is that of before; none for one that a plan read in steps', async () => {
    const store = openMemoryStore()
    let meanwhile = () => {}
    const local = store.local as LocalReads
    const racing: Store = {
      ...store,
      async concatValues(range, beside) {
        const values = await store.concatValues(range, beside)
        meanwhile()
        return values
      },
      async keys(range) {
        const found = await store.keys(range)
        meanwhile()
        return found
      },
      local: {
        ...local,
        concatValues: (range, bytesMax, use) =>
          local.concatValues(range, bytesMax, (values) => {
            meanwhile()
            return use(values)
          }),
      },
    }
    const platform = await createTestPlatform({ store: racing, sources: [skeleton] })
    const rows = new Map<string, Connection>()
    const chance = random(6)
    await write(store, new Map([['a', pickConnection(chance, 'a')]]), rows)
    meanwhile = () => void write(store, new Map([['b', pickConnection(chance, 'b')]]), rows)
    const idsIn = async (response: { json(): Promise<unknown> }) =>
      ((await response.json()) as { connections: Connection[] }).connections.map(({ connectionId }) => connectionId)
    const overtaken = await get(platform, key)
    expect(await idsIn(overtaken.clone())).toEqual(['a'])
    meanwhile = () => {}
    const settled = await get(platform, key)
    expect(settled.headers.get('etag')).not.toBe(overtaken.headers.get('etag'))
    expect(await idsIn(settled.clone())).toEqual(['a', 'b'])
    const name = rows.get('a')?.name ?? ''
    const headers = { authorization: `Bearer ${key}` }
    const named = () => platform.fetch(`/connect/acme?name=${encodeURIComponent(name)}`, { headers })
    expect((await named()).headers.get('etag')).not.toBeNull()
    meanwhile = () => void write(store, new Map([['c', pickConnection(chance, 'c')]]), rows)
    const inSteps = await named()
    expect([inSteps.status, inSteps.headers.get('etag')]).toEqual([200, null])
    expect(await idsIn(inSteps)).toEqual(['a'])
  })

  test('a large page is read in its owner’s time only, also where it was small before', async () => {
    const store = openMemoryStore()
    const local = store.local as LocalReads
    const reads: boolean[] = []
    const watched: Store = {
      ...store,
      local: {
        ...local,
        concatValues(range, bytesMax, use) {
          const used = local.concatValues(range, bytesMax, use)
          reads.push(used !== undefined)
          return used
        },
      },
    }
    const platform = await createTestPlatform({ store: watched, sources: [skeleton] })
    const rows = new Map<string, Connection>()
    const chance = random(7)
    const large = (id: string) => ({ ...pickConnection(chance, id), metadata: { text: 'x'.repeat(60_000) } })
    const ask = async () => {
      const { connections } = (await (await get(platform, key)).json()) as { connections: Connection[] }
      return connections.map(({ connectionId }) => connectionId).join()
    }
    await write(store, new Map([['a', pickConnection(chance, 'a')]]), rows)
    expect([await ask(), await ask(), ...reads.splice(0)]).toEqual(['a', 'a', true])
    for (const id of ['b', 'c', 'd', 'e', 'f']) await write(store, new Map([[id, large(id)]]), rows)
    expect([await ask(), ...reads.splice(0)]).toEqual(['a,b,c,d,e,f', false])
    const fresh = await createTestPlatform({ store: watched, sources: [skeleton] })
    for (let i = 0; i < 3; i += 1) expect((await get(fresh, key)).status).toBe(200)
    expect(reads).toEqual([])
  })
})

test('a constraint on an id that cannot be is of no row, wherever a walk stands', async () => {
  const store = openMemoryStore()
  const work = { examined: 0, slices: new Slices(new Turns(), { keyId: 'a', family: 'a' }) }
  const scope = { namespace: 'acme', filters: [], blocks: [{ metadata: [[['connectionId', '\u0100zz']]] }] } as const
  expect(await planOf(store, scope, work)('')).toBeUndefined()
})
