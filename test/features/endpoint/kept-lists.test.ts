/** The kept lists of connections: in the store, counted, and gone when they are another connection's. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { listFreshMs, listKeptMs } from '../../../src/features/endpoint/kept-lists.ts'
import { joinedDefinitionsMax } from '../../../src/features/endpoint/list-problem.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import { mintToken } from '../../api/cases.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, problemsOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'
import { bearer, localServer, localUpstream, messageIn } from '../../support/upstream.ts'

let isUp = true
let tools: object[] = []
let lists = 0
let upstream: Bun.Server<undefined>
let platform: TestPlatform

beforeAll(() => {
  upstream = localServer(async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { method, id, params } = (await request.json()) as {
      method: string
      id?: number
      params?: { cursor?: string }
    }
    if (!isUp) return new Response(null, { status: 500 })
    if (method === 'tools/list') lists += 1
    if (id === undefined) return new Response(null, { status: 202 })
    const greeting = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? greeting : page(params?.cursor) })
  })
})
afterAll(() => upstream.stop(true))
beforeEach(() => {
  isUp = true
  lists = 0
  tools = [{ name: 'a', inputSchema: { type: 'object' } }]
})

/** Of tools. */
let pageSize = 3
/** Some tools, and where the next ones are. */
function page(cursor = '0') {
  const next = Number(cursor) + pageSize
  const more = next < tools.length ? { nextCursor: String(next) } : {}
  return { tools: tools.slice(Number(cursor), next), ...more }
}

/** Owners have paid for what they did whenever they are asked. */
function unhurried() {
  let now = 0
  const time = new Paces(
    clockOf(() => {
      now += 60_000
      return now
    }),
  )
  return { ...createFairness(), time }
}

async function begin(
  options: Parameters<typeof createTestPlatform>[0] = {},
  ids: readonly string[] = ['one'],
): Promise<void> {
  platform = await createTestPlatform({ upstream: localUpstream(), ...options })
  for (const id of ids) await put(id)
}
const put = (id: string, more: object = {}) =>
  platform.fetch(`/connect/ada/${id}`, {
    method: 'PUT',
    headers: bearer(sampleKeys.ada),
    body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp`, ...more }),
  })
/** The tools of a connection, and why they are old or missing. */
async function listOf(id: string) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const response = await platform.fetch('/connect/ada/mcp', { method: 'POST', headers: bearer(sampleKeys.ada), body })
  const { result } = await messageIn(response)
  const about = (name: string) => result._meta?.[name]?.find((one: { connectionId: string }) => one.connectionId === id)
  const own = result.tools.filter(({ name }: { name: string }) => name.startsWith(`${id}__`))
  return {
    tools: own.map(({ name }: { name: string }) => name.slice(id.length + 2)) as string[],
    skipped: about('postern/skipped')?.error as string | undefined,
    stale: about('postern/stale')?.error as string | undefined,
  }
}
const recordOf = (id: string) => platform.store.get(keyOf('keptList', 'ada', id))

test('a list is stored once, counts for its namespace, and goes with its connection', async () => {
  await begin()
  expect(await listOf('one')).toEqual({ tools: ['a'], skipped: undefined, stale: undefined })
  const record = await recordOf('one')
  expect(record).toBeDefined()
  expect(await problemsOf(platform)).toEqual([])
  for (let again = 0; again < 3; again += 1) await listOf('one')
  expect(lists).toBe(1)
  platform.now += listFreshMs
  await listOf('one')
  await until(() => lists === 2)
  // The same as before: not written again.
  expect(await recordOf('one')).toEqual(record as Uint8Array)
  await platform.fetch('/connect/ada/one', { method: 'DELETE', headers: bearer(sampleKeys.ada) })
  expect(await recordOf('one')).toBeUndefined()
  expect(await problemsOf(platform)).toEqual([])
})

test('a connection that lists a name twice stands among the skipped ones, and so says its status', async () => {
  tools = ['a', 'a', 'b'].map((name) => ({ name, inputSchema: { type: 'object' } }))
  await begin()
  expect(await listOf('one')).toEqual({ tools: ['b'], skipped: 'name_collision', stale: undefined })
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'connections_status' } }
  const init = { method: 'POST', headers: bearer(sampleKeys.ada), body: JSON.stringify(call) }
  const { result } = await messageIn(await platform.fetch('/connect/ada/mcp?status=tool', init))
  const one = result.structuredContent.connections.find((each: { connectionId: string }) => each.connectionId === 'one')
  expect(one).toMatchObject({ state: 'skipped', tools: 1, error: 'name_collision' })
})

test('other headers drop the list at once, and other writes keep it', async () => {
  await begin()
  await listOf('one')
  await put('one', { name: 'Another name', metadata: { a: 'b' } })
  await listOf('one')
  expect(lists).toBe(1)
  await put('one', { headers: { 'x-key': 'other' } })
  tools = [{ name: 'b', inputSchema: { type: 'object' } }]
  expect((await listOf('one')).tools).toEqual(['b'])
  expect(await problemsOf(platform)).toEqual([])
})

test('a server that fails is stale for a day and then left out', async () => {
  await begin()
  await listOf('one')
  isUp = false
  platform.now += listFreshMs
  await listOf('one')
  await until(async () => (await listOf('one')).stale === 'upstream_error')
  expect((await listOf('one')).tools).toEqual(['a'])
  platform.now += listKeptMs
  expect(await listOf('one')).toEqual({ tools: [], skipped: 'upstream_error', stale: undefined })
})

test('a namespace that is full lists from memory, and stores nothing', async () => {
  await begin()
  const usage = Number(
    Buffer.from((await platform.store.get(keyOf('usage', 'ada'))) ?? [])
      .toString()
      .split(' ')[1],
  )
  await begin({ quota: { bytes: usage + 50 } })
  expect((await listOf('one')).tools).toEqual(['a'])
  expect(await recordOf('one')).toBeUndefined()
  expect((await listOf('one')).tools).toEqual(['a'])
  expect(lists).toBeLessThanOrEqual(2)
})

test('lists past so many definitions in all are left out, and their servers are not asked for an answer', async () => {
  pageSize = joinedDefinitionsMax
  tools = Array.from({ length: Math.ceil(joinedDefinitionsMax / 2.5) }, (_, i) => ({ name: `t${i}` }))
  await begin({ fairness: unhurried() }, [])
  for (const id of ['c', 'b', 'a']) {
    await put(id)
    await listOf(id)
    // Its owner has used up its time, and the clock stands still otherwise.
    platform.now += listFreshMs
  }
  const before = lists
  expect((await listOf('a')).tools).toHaveLength(tools.length)
  expect(await listOf('c')).toEqual({ tools: [], skipped: 'too_large', stale: undefined })
  await until(() => lists >= before + 2)
  expect(lists).toBe(before + 2)
  pageSize = 3
})

test('owners that wait for their time keep no other from joining large lists', async () => {
  tools = Array.from({ length: 3 }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(2e5) }))
  let [now, step] = [0, 60_000]
  const time = new Paces(clockOf(() => (now += step)))
  await begin({ fairness: { ...createFairness(), time } })
  await listOf('one')
  const list = (name: string, key: string) => {
    // What its owner has done so far is paid.
    now += 100
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    return platform.fetch(`/connect/${name}/mcp?names=64`, { method: 'POST', headers: bearer(key), body })
  }
  const waiting: Promise<Response>[] = []
  for (const owner of ['grace', 'linus', 'priya', 'jonas'] as const) {
    const headers = bearer(sampleKeys[owner])
    await platform.fetch(`/namespaces/of-${owner}`, { method: 'PUT', headers })
    const body = JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    await platform.fetch(`/connect/of-${owner}/one`, { method: 'PUT', headers, body })
    // A list that is read for the first time is paid by its owner, too.
    step = 60_000
    expect((await list(`of-${owner}`, sampleKeys[owner])).status).toBe(200)
    step = 0
    time.spend(owner, 300)
    waiting.push(list(`of-${owner}`, sampleKeys[owner]))
  }
  expect((await list('ada', sampleKeys.ada)).status).toBe(200)
  now += 60_000
  for (const one of waiting) expect((await one).status).toBe(200)
})

test('a connection that comes under a rule, or is deleted, while a list waits for its owner is not in it', async () => {
  tools = Array.from({ length: 3 }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(2e5) }))
  let [now, step] = [0, 60_000]
  const time = new Paces(clockOf(() => (now += step)))
  await begin({ fairness: { ...createFairness(), time } }, [])
  const team = { metadata: { team: 'a' } }
  for (const id of ['one', 'two', 'three']) await put(id, team)
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'a' } }] })
  const names = async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const response = await platform.fetch('/connect/ada/mcp', { method: 'POST', headers: bearer(token), body })
    const { result } = await messageIn(response)
    return result.tools.map(({ name }: { name: string }) => name.split('__')[0]) as string[]
  }
  expect(await names()).toEqual(['one', 'one', 'one', 'three', 'three', 'three', 'two', 'two', 'two'])
  step = 0
  time.spend('ada', 300)
  const waiting = names()
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  await put('one', { metadata: { team: 'b' } })
  await put('two', { metadata: { team: 'a', more: 1 } })
  await platform.fetch('/connect/ada/three', { method: 'DELETE', headers: bearer(sampleKeys.ada) })
  platform.now += 100
  step = 60_000
  expect(await waiting).toEqual(['two', 'two', 'two'])
})

test('large lists are not joined for a client that has gone', async () => {
  tools = Array.from({ length: 3 }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(2e5) }))
  await begin()
  await listOf('one')
  const client = new AbortController()
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const ask = (signal?: AbortSignal) =>
    platform.fetch('/connect/ada/mcp?names=64', {
      method: 'POST',
      headers: bearer(sampleKeys.ada),
      body,
      ...(signal && { signal }),
    })
  client.abort()
  expect((await ask(client.signal)).status).toBe(429)
  expect((await ask()).status).toBe(200)
})

test('lists past 16 MB in all are left out, and are not read for an answer', async () => {
  tools = Array.from({ length: 9 }, (_, i) => ({ name: `t${i}`, description: 'x'.repeat(5e5) }))
  await begin({ fairness: unhurried() }, [])
  const ids = ['d', 'c', 'b', 'a']
  // One after the other: each counts while it is read.
  for (const id of ids) {
    await put(id)
    await listOf(id)
    expect((await recordOf(id))?.length).toBeGreaterThan(45e5)
  }
  for (const id of ['a', 'b', 'c']) expect((await listOf(id)).tools).toHaveLength(9)
  expect(await listOf('d')).toEqual({ tools: [], skipped: 'too_large', stale: undefined })
})

test('a server whose lists together have more than 16 MB is left out each time, and can be called', async () => {
  const kinds: Record<string, string> = {
    tools: 'name',
    prompts: 'name',
    resources: 'uri',
    resourceTemplates: 'uriTemplate',
  }
  const greeting = { capabilities: { tools: {}, prompts: {}, resources: {} }, serverInfo: { name: 's', version: '1' } }
  using large = localServer(async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { method, id, params } = (await request.json()) as {
      method: string
      id?: number
      params?: { cursor?: string }
    }
    if (id === undefined) return new Response(null, { status: 202 })
    const reply = (result: object) => Response.json({ jsonrpc: '2.0', id, result })
    if (method === 'initialize') return reply({ protocolVersion: '2025-06-18', ...greeting })
    if (method === 'tools/call') return reply({ content: [{ type: 'text', text: 'called' }] })
    const kind = method === 'resources/templates/list' ? 'resourceTemplates' : (method.split('/')[0] as string)
    const at = Number(params?.cursor ?? 0)
    const page = [at, at + 1, at + 2].map((one) => ({
      [kinds[kind] as string]: `x${one}`,
      description: 'x'.repeat(5e5),
    }))
    return reply({ [kind]: page, ...(at < 6 && { nextCursor: String(at + 3) }) })
  })
  await begin({ fairness: unhurried() }, [])
  await put('large', { mcpUrl: large.url.href })
  for (let again = 0; again < 2; again += 1) {
    expect(await listOf('large')).toEqual({ tools: [], skipped: 'too_large', stale: undefined })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'large__x1', arguments: {} } }
    const init = { method: 'POST', headers: bearer(sampleKeys.ada), body: JSON.stringify(call) }
    expect(await messageIn(await platform.fetch('/connect/ada/mcp', init))).toMatchObject({
      result: { content: [{ text: 'called' }] },
    })
    platform.now += 40_000
  }
  expect(await recordOf('large')).toBeUndefined()
})

test('a list counts for its reader while its server is asked for other lists', async () => {
  const isAsked = Promise.withResolvers<void>()
  const isOver = Promise.withResolvers<void>()
  const slow = localServer(async (request) => {
    const { method, id } = (await request.json()) as { method: string; id?: number }
    const answer = (result: object) => Response.json({ jsonrpc: '2.0', id, result })
    if (id === undefined) return new Response(null, { status: 202 })
    if (method === 'initialize')
      return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {}, prompts: {} }, serverInfo: {} })
    if (method === 'tools/list') return answer({ tools: [{ name: 'a', description: 'x'.repeat(100_000) }] })
    isAsked.resolve()
    await isOver.promise
    return answer({ prompts: [] })
  })
  // A quarter is one caller's.
  const memory = new Shares(4 * 350_000)
  await begin({ fairness: { ...unhurried(), memory } }, [])
  const holder = { keyId: 'another', family: 'another' }
  const left = () => {
    let bytes = 0
    while (memory.take(holder, 10_000)) bytes += 10_000
    memory.giveBack(holder, bytes)
    return bytes
  }
  const before = left()
  await put('slow', { mcpUrl: `http://127.0.0.1:${slow.port}/mcp` })
  const listed = listOf('slow')
  await isAsked.promise
  // Two bytes for a character, of which another caller could have a quarter.
  expect(before - left()).toBeGreaterThanOrEqual(50_000)
  isOver.resolve()
  expect((await listed).tools).toEqual(['a'])
  await until(() => left() === before)
  slow.stop(true)
})

test('a member whose reads wait for its own places keeps no other member from the lists', async () => {
  await begin({}, [])
  const send = (method: string, path: string, body: object, key: string) =>
    platform.fetch(path, { method, headers: bearer(key), body: JSON.stringify(body) })
  const mcpUrl = `http://127.0.0.1:${upstream.port}/mcp`
  await send('PUT', '/namespaces/shared', { organizationId: 'org_northwind' }, sampleKeys.ada)
  await send('PUT', '/connect/shared/one', { mcpUrl }, sampleKeys.ada)
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  let hangs = false
  using silent = localServer(async (request) => {
    if (hangs) await released
    return fetch(mcpUrl, request)
  })
  for (let i = 0; i < 20; i += 1) await put(`s${i}`, { mcpUrl: `http://127.0.0.1:${silent.port}/mcp` })
  hangs = true
  const list = (name: string, key: string) =>
    send('POST', `/connect/${name}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, key).then(messageIn)
  const waiting = [list('ada', sampleKeys.ada), list('shared', sampleKeys.ada)]
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  const { result } = await list('shared', sampleKeys.grace)
  expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['one__a'])
  release()
  await Promise.all(waiting)
})
