/** What a request takes of its owner's part, and gives back when it is answered. */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Allowance, allowanceOf, answerMsPerMegabyte } from '../../src/fairness/allowance.ts'
import { createFairness, type Fairness, readsAtOnceMax } from '../../src/fairness/fairness.ts'
import { type Holder, ownerOf, strangerAt, ticketHolder } from '../../src/fairness/owner.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { ownerRequestsPerPassMax } from '../../src/fairness/passes.ts'
import { Shares } from '../../src/fairness/shares.ts'
import { Turns, type Work } from '../../src/fairness/turns.ts'
import { bodyMemoryFactor, parsedResponseMemoryFactor, pendingBytesMax, sliceCost } from '../../src/limits.ts'
import { type Costs, type OperationId, operationEntries, operations } from '../../src/operations.ts'
import type { Upstream } from '../../src/upstream/upstream.ts'
import { withAllowance } from '../support/allowance.ts'
import { apiOf, sampleApis } from '../support/api.ts'
import { clockOf } from '../support/clock.ts'
import { createTestPlatform, keyIdOf } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

const ada = { keyId: 'key', family: 'key', userId: 'ada' }
const open = (fairness: Fairness, reads: 'few' | 'many' | 'log' = 'few', headers = {}) =>
  new Allowance(fairness, new Request('http://localhost/', { headers }), () => '192.0.2.1', {
    costs: { bodyBytesMax: 1000, bodyMsPerMegabyte: 50, reads },
  })

test('an owner is a user with all keys, an organization, those of tickets for somebody’s namespaces, or a network', () => {
  const owners = [
    ada,
    { ...ada, keyId: 'another', family: 'token' },
    { keyId: 'key 2', family: 'key 2', userId: 'organization:acme' },
    ticketHolder('user ada', { namespace: 'a', connectionId: 'b' }),
    ticketHolder('user ada', { namespace: 'c', connectionId: 'b' }),
    strangerAt('192.0.2.1'),
    strangerAt('192.0.2.254'),
    strangerAt('192.0.3.1'),
    strangerAt('2001:db8:1:1::/64'),
    strangerAt('2001:db8:1:ffff::/64'),
    strangerAt('2001:db8:2:1::/64'),
    strangerAt('2001:db8::/64'),
    strangerAt('unknown'),
    // Users choose no such names.
    { ...ada, userId: 'network 192.0.2.1' },
  ].map(ownerOf)
  expect(owners).toEqual([
    'ada',
    'ada',
    'organization:acme',
    '\0tickets of user ada',
    '\0tickets of user ada',
    '\0network 192.0.2',
    '\0network 192.0.2',
    '\0network 192.0.3',
    '\0network 2001:db8:1',
    '\0network 2001:db8:1',
    '\0network 2001:db8:2',
    '\0network 2001:db8:0',
    '\0network unknown',
    'network 192.0.2.1',
  ])
})

test('what was taken for a stranger is given back to the stranger, whoever it turns out to be', () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * 1000 * bodyMemoryFactor) }
  const allowance = open(fairness)
  allowance.takeBody(1000)
  void allowance.belongsTo(ada)
  allowance.end()
  allowance.end()
  expect(fairness.memory.take(strangerAt('192.0.2.1'), 1000 * bodyMemoryFactor)).toBe(true)
  expect(fairness.memory.take(ada, 100)).toBe(true)
})

test('a revocation finds room for its body beside thousands of others of its network', () => {
  const fairness = { ...createFairness(), memory: new Shares(1_000_000) }
  while (fairness.memory.take(strangerAt('192.0.2.1'), 1000));
  const requestOf = (costs: Costs) =>
    new Allowance(fairness, new Request('http://localhost/'), () => '192.0.2.1', { costs })
  expect(() => requestOf(operations.exchangeToken.costs).takeBody(100)).toThrow('Too many request bodies')
  const revocation = requestOf(operations.revokeGrant.costs)
  revocation.takeBody(100)
  revocation.end()
})

test('what answers anybody belongs to the network that asks', async () => {
  const fairness = createFairness()
  const owners: string[] = []
  const passes = { ...fairness.passes, enter: (holder: Holder) => void owners.push(ownerOf(holder)) }
  const platform = await createTestPlatform({ fairness: { ...fairness, passes }, fastLane: false })
  for (const path of ['/docs', '/docs/limits', '/openapi.json', '/console', '/', '/nowhere']) await platform.fetch(path)
  expect([owners.length, new Set(owners).size]).toEqual([6, 1])
  expect(owners[0]).toStartWith('\0network ')
})

test('a record is read when all that it takes is taken, one large one of an owner at a time', async () => {
  const fairness = createFairness()
  const allowance = open(fairness)
  void allowance.belongsTo(ada)
  const size = 2 ** 20
  let reads = 0
  const read = async () => {
    reads += 1
    return new Uint8Array(size)
  }
  function* lengthOf(record: Uint8Array): Work<number> {
    // Until the event loop has turned.
    yield sliceCost
    return record.length
  }
  expect(await allowance.parseRecord({ bytes: size }, read, lengthOf)).toBe(size)
  expect(await allowance.parseRecord({ bytes: size }, async () => undefined, lengthOf)).toBeUndefined()
  const more = { bytes: 10, parsedBytes: pendingBytesMax }
  await expect(allowance.parseRecord(more, read, lengthOf)).rejects.toThrow('too many unread responses')
  await expect(allowance.parseRecord({ bytes: pendingBytesMax }, read, lengthOf)).rejects.toThrow('too many unread')
  expect(reads).toBe(1)
  // Of two at once the second finds what the first has read.
  let kept: number | undefined
  const once = async () => (kept === undefined ? read() : undefined)
  const one = async () => {
    kept = (await allowance.parseRecord({ bytes: size }, once, lengthOf)) ?? kept
    return kept
  }
  expect(await Promise.all([one(), one(), one()])).toEqual([size, size, size])
  expect(reads).toBe(2)
  expect(fairness.memory.take(ada, pendingBytesMax / 4)).toBe(true)
})

test('records of unknown size are counted when they are read, and those of one owner are read in turn', async () => {
  let now = 0
  const time = new Paces({ now: () => now, monotonic: () => now })
  const fairness = { ...createFairness(), time }
  const allowance = open(fairness)
  void allowance.belongsTo(ada)
  let reading = 0
  const read = async () => {
    reading += 1
    expect(reading).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    reading -= 1
    return 100 * 2 ** 20
  }
  await allowance.readRecords(read, (bytes) => bytes)
  expect(time.wait('ada')).toBeGreaterThan(0)
  now += 1e6
  await Promise.all([allowance.readRecords(read, () => 0), allowance.readRecords(read, () => 0)])
})

test('nothing is read for a client that has gone while its owner waited', async () => {
  const gone = new AbortController()
  const request = new Request('http://localhost/', { signal: gone.signal })
  const costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'few' } as const
  const allowance = new Allowance(createFairness(), request, () => '192.0.2.1', { costs })
  void allowance.belongsTo(ada)
  gone.abort()
  let reads = 0
  const read = async () => {
    reads += 1
  }
  await expect(allowance.readRecords(read, () => 0)).rejects.toThrow('The client disconnected')
  expect(reads).toBe(0)
})

test('requests that wait for a pass take memory of their owner with their bodies, until they are answered', async () => {
  const fairness = { ...createFairness(), memory: new Shares(64 * 1024) }
  const waits = (one: Allowance) => ({ one, place: one.belongsTo(ada) })
  for (let i = 0; i < ownerRequestsPerPassMax; i += 1) expect(open(fairness).pass()).toBeUndefined()
  // Before anybody has looked at the credential.
  expect(() => open(fairness, 'few', { 'content-length': '6000' }).pass()).toThrow('Too many request bodies')
  const long = () => open(fairness, 'few', { 'content-length': '1000' })
  for (let i = 0; i < ownerRequestsPerPassMax; i += 1) expect(waits(open(fairness)).place).toBeUndefined()
  // A token has a quarter of all.
  const first = waits(long())
  const second = long()
  expect(() => waits(second)).toThrow('Too many request bodies of this caller')
  second.end()
  expect(open(fairness).belongsTo({ ...ada, userId: 'bob' })).toBeUndefined()
  await first.place
  // Read now, its body takes nothing more.
  expect(first.one.takeAnnouncedBody()).toBe(1000)
  expect(fairness.memory.take(ada, 10_000)).toBe(false)
  first.one.end()
  expect(fairness.memory.take(ada, 10_000)).toBe(true)
})

test('the end of a stream takes no memory and is not refused, however many end together', async () => {
  const fairness = { ...createFairness(), memory: new Shares(2 ** 20) }
  const streams = Array.from({ length: 4 * ownerRequestsPerPassMax }, () => open(fairness))
  for (const stream of streams) await stream.belongsTo(ada)
  const letGo = streams.map((stream) => stream.hold())
  for (const end of letGo) end()
  for (const stream of streams) stream.end()
  await Promise.all(streams.map((stream) => stream.pass('end')))
  // A token has a quarter of all.
  expect(fairness.memory.take(ada, 2 ** 18)).toBe(true)
})

test('requests that read logs take no place of those that read many records', async () => {
  const fairness = createFairness()
  const readers = Array.from({ length: 20 }, (_, i) => ({ keyId: `${i}`, family: `${i}`, userId: `${i}` }))
  for (const reader of readers) void open(fairness, 'log').belongsTo(reader)
  await open(fairness, 'many').belongsTo(ada)
})

test('a request that reads many records has one of its owner’s places until it is answered', async () => {
  const fairness = createFairness()
  const held = Array.from({ length: readsAtOnceMax / 2 }, () => open(fairness, 'many'))
  for (const one of held) await one.belongsTo(ada)
  const next = open(fairness, 'many')
  let isIn = false
  const entered = next.belongsTo(ada)?.then(() => {
    isIn = true
  })
  // Others have places, and what reads few needs none.
  await open(fairness, 'many').belongsTo({ ...ada, userId: 'grace' })
  expect(open(fairness).belongsTo(ada)).toBeUndefined()
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(isIn).toBe(false)
  held[0]?.end()
  await entered
  expect(isIn).toBe(true)
})

test('every operation gives everything back, whatever it answers', async () => {
  const fairness = createFairness()
  const platform = await createTestPlatform({ fairness, isRegistryOpen: true, fastLane: false })
  const statuses = new Set<number>()
  for (const [id, { method, path }] of operationEntries) {
    for (const key of [sampleKeys.ada, sampleKeys.operator, 'no key', undefined]) {
      for (const body of [undefined, '{', '{}', 'a=b', 'x'.repeat(1_100_000)]) {
        if (method === 'GET' && body !== undefined) continue
        // With names that are there, where there are some.
        const url = path.replace('{namespace}', 'ada').replaceAll(/\{\+?\w+\}/g, 'ada')
        const headers = {
          'content-type': formOperations.has(id) ? 'application/x-www-form-urlencoded' : 'application/json',
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
        }
        const response = await platform.fetch(url, { method, headers, ...(body !== undefined && { body }) })
        statuses.add(response.status)
        await response.body?.cancel()
      }
    }
  }
  for (const status of [200, 201, 400, 401, 403, 404, 413]) expect([...statuses]).toContain(status)
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(fairness.reads.isIdle).toBe(true)
  expect(fairness.memory.take(ada, pendingBytesMax / 4)).toBe(true)
})

const formOperations: ReadonlySet<OperationId> = new Set(['exchangeToken', 'revokeGrant', 'signIn', 'decideConsent'])

test('of an owner’s writes eight are committed at once; its deletions and others’ writes do not wait', async () => {
  const fairness = createFairness()
  const [own, other] = [open(fairness), open(fairness)]
  own.belongsTo(ada)
  other.belongsTo({ ...ada, userId: 'grace' })
  const order: string[] = []
  const ends: (() => void)[] = []
  const write = (allowance: Allowance, name: string, kind?: 'removal') =>
    allowance.commit(async () => {
      order.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
    }, kind)
  const all = [
    ...Array.from({ length: 9 }, (_, index) => write(own, `own ${index}`)),
    write(own, 'deletion', 'removal'),
    write(other, 'other'),
  ]
  await until(() => order.includes('other'))
  expect(order).toEqual([...Array.from({ length: 8 }, (_, index) => `own ${index}`), 'deletion', 'other'])
  ends[0]?.()
  await until(() => order.length === 11)
  expect(order.at(-1)).toBe('own 8')
  const settled = Promise.all(all)
  await until(() => {
    for (const end of ends) end()
    return order.length === 11 && fairness.commits.isIdle
  })
  await settled
})

/** A platform on which other requests have all of Ada's places for reads, and the functions that leave them. */
async function withoutPlaceForAda() {
  const fairness = createFairness()
  const platform = await createTestPlatform({ fairness, fastLane: false })
  const leave: (() => void)[] = []
  for (let i = 0; i < readsAtOnceMax / 2; i += 1)
    leave.push(await fairness.reads.enter({ keyId: 'any', family: 'any', userId: 'ada' }))
  return { platform, leave }
}

test('a list waits for a place of its owner, and others’ do not', async () => {
  const { platform, leave } = await withoutPlaceForAda()
  let isAnswered = false
  const list = apiOf(
    platform.fetch,
    sampleKeys.ada,
  )('GET /connect/ada').then(() => {
    isAnswered = true
  })
  expect((await apiOf(platform.fetch, sampleKeys.operator)('GET /connect/ada')).status).toBe(200)
  expect((await apiOf(platform.fetch, sampleKeys.ada)('GET /health')).status).toBe(200)
  expect(isAnswered).toBe(false)
  for (const one of leave) one()
  await list
})

test('a list that waited for a place is nothing to a key that was revoked meanwhile', async () => {
  const { platform, leave } = await withoutPlaceForAda()
  const list = apiOf(platform.fetch, sampleKeys.ada)('GET /connect/ada')
  const operator = apiOf(platform.fetch, sampleKeys.operator)
  expect((await operator(`DELETE /api-keys/${await keyIdOf(platform, 'ada')}`)).status).toBe(200)
  for (const one of leave) one()
  expect((await list).status).toBe(401)
})

test('a call’s body counts until its event stream ends', async () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * (32 * 1024 + 3000 * bodyMemoryFactor)) }
  const streams: ReadableStreamDefaultController<Uint8Array>[] = []
  const upstream: Upstream = {
    async send({ body }) {
      const { id, method } = JSON.parse(String(body instanceof Uint8Array ? Buffer.from(body) : body))
      if (method !== 'tools/call') {
        const bytes = new TextEncoder().encode(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
        return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes }
      }
      const open = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) })
      return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: open }
    },
  }
  const platform = await createTestPlatform({ fairness, upstream })
  await apiOf(platform.fetch, sampleKeys.ada)('PUT /connect/ada/up', { mcpUrl: 'https://up.example.com/mcp' })
  const call = () =>
    platform.fetch('/connect/ada/up/mcp', {
      method: 'POST',
      headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'x', arguments: { x: 'x'.repeat(2000) } },
      }),
    })
  const first = await call()
  expect([first.status, (await call()).status]).toEqual([200, 429])
  streams[0]?.close()
  await first.text()
  const second = await call()
  expect(second.status).toBe(200)
  await second.body?.cancel()
  const third = await call()
  expect(third.status).toBe(200)
  await third.body?.cancel()
})

test('large bodies and answers of an owner wait for its part of the time, with whichever key, and nobody else waits', async () => {
  const waits: string[] = []
  class Noted extends Paces {
    override spend(owner: string, milliseconds: number) {
      waits.push(`${owner} spends ${milliseconds}`)
    }
    override wait() {
      return 1
    }
    override async pause(owner: string, milliseconds = 0) {
      waits.push(`${owner} waits`)
      if (milliseconds > 0) this.spend(owner, milliseconds)
    }
  }
  const fairness: Fairness = { ...createFairness(), time: new Noted() }
  const one = open(fairness, 'many')
  await one.belongsTo(ada)
  await one.paceBody(2 ** 20)
  one.takeValues(1000)
  one.takeValues(100_000)
  one.takeAnswer(2 ** 21)()
  one.end()
  expect(waits).toEqual([
    'ada waits',
    'ada waits',
    'ada spends 50',
    'ada spends 25',
    `ada spends ${2 * answerMsPerMegabyte}`,
  ])
})

test('the values of a body take memory until its request is answered', async () => {
  const fairness = createFairness()
  const one = open(fairness, 'many')
  await one.belongsTo(ada)
  const free = () => {
    let bytes = 256 * 2 ** 20
    while (!fairness.memory.take(ada, bytes)) bytes -= 2 ** 20
    fairness.memory.giveBack(ada, bytes)
    return bytes / 2 ** 20
  }
  const before = free()
  one.takeValues(140_000)
  expect(free()).toBeLessThan(before - 20)
  expect(() => {
    for (let body = 0; body < 20; body += 1) one.takeValues(140_000)
  }).toThrow('Too many request bodies')
  one.end()
  expect(free()).toBe(before)
})

describe('a response that is parsed', () => {
  const large = 2 ** 20
  const of = (fairness: Fairness, holder = ada) => {
    const allowance = open(fairness)
    void allowance.belongsTo(holder)
    return allowance
  }

  test('waits for a large one of its owner before it, and for nobody else’s', async () => {
    const fairness = createFairness()
    const order: string[] = []
    let isOver = false
    function* work(name: string, isLong = false): Work<void> {
      order.push(name)
      while (isLong && !isOver) yield sliceCost
    }
    const running = [of(fairness).parse(large, work('first', true)), of(fairness).parse(large, work('second'))]
    await of(fairness, { ...ada, userId: 'other' }).parse(large, work('another’s'))
    expect(order).toEqual(['first', 'another’s'])
    isOver = true
    await Promise.all(running)
    expect(order).toEqual(['first', 'another’s', 'second'])
  })

  test('counts for its owner’s memory and time, however small', async () => {
    const spent: number[] = []
    class Noted extends Paces {
      override spend(_: string, milliseconds: number) {
        spent.push(milliseconds)
      }
    }
    const memory = new Shares(4 * large)
    const parsed = new Shares(4 * large * (parsedResponseMemoryFactor - 1))
    const fairness = { ...createFairness(), memory, parsed, time: new Noted() }
    function* nothing(): Work<void> {
      yield 1
    }
    for (const characters of [large, large, 0]) await of(fairness).parse(characters, nothing())
    expect(spent).toEqual([10.04, 10.04, 0.008])
    await expect(of(fairness).parse(large + 1, nothing())).rejects.toThrow('too many unread responses')
    expect(memory.take(ada, large)).toBe(true)
    expect(parsed.take(ada, large * (parsedResponseMemoryFactor - 1))).toBe(true)
  })

  test('counts while it waits for its place', async () => {
    // The texts of three: a quarter is one key's.
    const memory = new Shares(4 * large * 3)
    const fairness = { ...createFairness(), memory }
    function* work(): Work<void> {
      yield sliceCost
    }
    const parsed = await Promise.allSettled(Array.from({ length: 4 }, () => of(fairness).parse(large, work())))
    expect(parsed.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    expect(memory.take(ada, large * 3)).toBe(true)
  })

  test('of each of many owners is parsed, a few at once: together they would leave no memory for any', async () => {
    const fairness = createFairness()
    function* work(): Work<void> {
      for (let step = 0; step < 5; step += 1) yield sliceCost
    }
    const owners = Array.from({ length: 30 }, (_, i) => ({ keyId: `${i}`, family: `${i}`, userId: `${i}` }))
    const parsed = await Promise.allSettled(owners.map((owner) => of(fairness, owner).parse(3 * large, work())))
    expect(parsed.filter(({ status }) => status === 'rejected')).toEqual([])
  })

  test('waits until its owner has time again', async () => {
    let left = 2
    class Behind extends Paces {
      override async pause() {
        left -= 1
      }
    }
    function* look(): Work<number> {
      yield 1
      return left
    }
    expect(await of({ ...createFairness(), time: new Behind() }).parse(5000, look())).toBe(1)
  })
})

test('an owner whose places for writes are taken holds up nobody else', async () => {
  const fairness = createFairness()
  const of = (keyId: string) => {
    const allowance = allowanceOf(withAllowance(new Request('http://a/'), {}, fairness))
    void allowance.belongsTo({ keyId, family: keyId, userId: keyId })
    return allowance
  }
  const done: string[] = []
  const note = (name: string) => async () => void done.push(name)
  const release = Promise.withResolvers<void>()
  const held = Array.from({ length: 8 }, () => of('mallory').commit(() => release.promise))
  const waiting = of('mallory').write('a record', note('mallory'))
  await Promise.all([
    of('mallory').changeDirectory(note('directory of mallory')),
    of('ada').changeDirectory(note('directory of ada')),
    of('ada').write('a record', note('ada')),
  ])
  expect(done.toSorted()).toEqual(['ada', 'directory of ada', 'directory of mallory'])
  release.resolve()
  await Promise.all([waiting, ...held])
  expect(done).toContain('mallory')
})

test('all parts of a request have the same slices', () => {
  const allowance = open(createFairness())
  expect(allowance.slices()).toBe(allowance.slices())
  expect(open(createFairness()).slices()).not.toBe(allowance.slices())
})

test('an owner whose time is used up can revoke a token at once, however long its text is', async () => {
  const time = new Paces(clockOf(() => 0))
  const fairness = { ...createFairness(), time, turns: new Turns(time) }
  const platform = await createTestPlatform({ fairness })
  const { ada: api } = sampleApis(platform.fetch)
  const policy = [{ metadata: Array.from({ length: 200 }, (_, i) => ({ team: `team ${i}` })) }]
  const { token } = (await api('POST /tokens', { policy })).body
  expect(token.length).toBeGreaterThan(4100)
  time.spend('ada', 1e6)
  expect((await api('POST /tokens/revoke', { token })).status).toBe(200)
})

test('an owner whose time is used up can remove another owner of its organization', async () => {
  const time = new Paces(clockOf(() => 0))
  const platform = await createTestPlatform({ fairness: { ...createFairness(), time, turns: new Turns(time) } })
  const { ada: api, operator } = sampleApis(platform.fetch)
  expect((await operator('PUT /organizations/org_new', { owner: 'ada' })).status).toBe(201)
  const member = '/organizations/org_new/members/mallory'
  expect((await api(`PUT ${member}`, { role: 'owner' })).status).toBe(200)
  time.spend('ada', 1e6)
  expect((await api(`PUT ${member}`, { role: 'member' })).status).toBe(200)
  expect((await api(`PUT ${member}`, { role: 'owner' })).status).toBe(200)
  expect((await api(`DELETE ${member}`)).status).toBe(200)
})

test('whatever a request takes and however it ends, all of it is back afterwards', async () => {
  const total = 2 ** 18
  const kinds = [
    'pass',
    'body',
    'announced',
    'values',
    'answer',
    'records',
    'hold',
    'commit',
    'removal',
    'end',
  ] as const
  const ada = { keyId: 'key', family: 'key', userId: 'ada' }
  const steps = fc.array(fc.tuple(fc.nat(11), fc.constantFrom(...kinds), fc.nat(20_000)), { maxLength: 80 })
  const property = fc.asyncProperty(steps, async (all) => {
    const fairness = { ...createFairness(), memory: new Shares(total) }
    const long = { 'content-length': '500' }
    // Some are refused before anybody knows whose they are.
    const requests = Array.from({ length: 12 }, (_, i) => open(fairness, i % 3 === 0 ? 'many' : 'few', long))
    const waiting: unknown[] = []
    const letGo: (() => void)[] = []
    for (const [index, one] of requests.entries())
      if (index % 4 !== 3) waiting.push(Promise.try(() => one.belongsTo(ada)).catch(() => {}))
    for (const [index, kind, amount] of all) {
      const one = requests[index] as Allowance
      try {
        if (kind === 'pass') waiting.push(Promise.resolve(one.pass('end')))
        if (kind === 'body') one.takeBody(amount)
        if (kind === 'announced') one.takeAnnouncedBody()
        if (kind === 'values') one.takeValues(amount / 10)
        if (kind === 'answer') letGo.push(one.takeAnswer(amount))
        if (kind === 'records') letGo.push(one.takeRecords(amount))
        if (kind === 'hold') letGo.push(one.hold())
        if (kind === 'commit' || kind === 'removal')
          waiting.push(one.commit(async () => {}, kind === 'commit' ? undefined : 'removal').catch(() => {}))
      } catch {
        // Refused.
      }
    }
    for (const one of requests) one.end()
    for (const end of letGo) end()
    for (const one of requests) waiting.push(Promise.resolve(one.pass('end')))
    await Promise.all(waiting)
    for (const one of requests) one.end()
    // A key has a quarter of all, and so has a network.
    for (const holder of [ada, strangerAt('192.0.2.1'), { ...ada, family: '\0removals of key' }]) {
      expect(fairness.memory.take(holder, total / 4)).toBe(true)
      fairness.memory.giveBack(holder, total / 4)
    }
    await until(() => fairness.commits.isIdle && fairness.removals.isIdle && fairness.reads.isIdle)
  })
  await fc.assert(property, { numRuns: 200 })
})

test('what works before anybody looks at a credential waits for its network’s part of a pass; health and keys do not', async () => {
  let entered = 0
  const passes = {
    isFull: () => false,
    enter() {
      entered += 1
      return undefined
    },
  }
  const { fetch } = await createTestPlatform({ fairness: { ...createFairness(), passes } })
  const visits = async (method: string, path: string) => {
    entered = 0
    await (await fetch(path, { method })).text()
    return entered
  }
  for (const path of [
    '/signin',
    '/oauth/token',
    '/oauth/register',
    '/oauth/revoke',
    '/connect/ada/x/setup',
    '/nowhere',
  ])
    expect({ path, waited: (await visits('POST', path)) > 0 }).toEqual({ path, waited: true })
  for (const path of ['/signin', '/signin/cli', '/oauth/callback', '/oauth/authorize', '/api/auth/cli/poll/x', '/docs'])
    expect({ path, waited: (await visits('GET', path)) > 0 }).toEqual({ path, waited: true })
  for (const path of ['/health', '/.well-known/jwks.json']) expect(await visits('GET', path)).toBe(0)
})
