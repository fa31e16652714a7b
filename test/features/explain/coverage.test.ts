/** `POST /tokens/coverage`: each verdict is that of `POST /tokens/explain`, and nothing else is shown. */

import { beforeAll, describe, expect, test } from 'bun:test'
import type { Coverage, Explanation } from '../../../src/model/explain.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, source, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { bearer, localServer, localUpstream } from '../../support/upstream.ts'
import { ada, ask, eve, operator, pickConstraint, question, world } from './acme.ts'

let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform({ sources: [world] })
})
const cover = (key: string, body: object) => question<Coverage>(platform, key, 'coverage', body)
const idsOf = ({ connections }: Coverage) => connections.map((one) => `${one.namespace}/${one.connectionId}`)

test('every verdict is that of an explanation', async () => {
  const chance = random(5)
  const seen = { allow: 0, depends: 0, refuse: 0 }
  for (let round = 0; round < 25; round += 1) {
    const policy = [pickConstraint(chance), pickConstraint(chance)]
    const { connections, summary } = await cover(ada, { policy })
    for (const { namespace, connectionId, verdict, place, tools } of connections) {
      const at = { namespace, connection: connectionId }
      const explain = (request: object) => question<Explanation>(platform, ada, 'explain', { policy, request })
      for (const tool of tools ?? []) {
        const { verdict, decidedBy } = await explain({ ...at, tool: tool.name })
        const where = verdict === 'allow' ? null : decidedBy?.place
        expect({ policy, at, ...tool }).toMatchObject({ policy, at, verdict, place: where } as never)
        seen[verdict] += 1
      }
      const verdicts = (tools ?? []).map((tool) => tool.verdict)
      const best = (['allow', 'depends', 'refuse'] as const).find((one) => verdicts.includes(one))
      if (best !== undefined) expect({ policy, at, verdict }).toEqual({ policy, at, verdict: best })
      if (place !== null) expect(new Set((tools ?? []).map((tool) => tool.place)).size).toBeLessThan(2)
    }
    const all = connections.flatMap(({ tools }) => tools ?? [])
    const count = (one: string) => all.filter(({ verdict }) => verdict === one).length
    const tools = { allow: count('allow'), depends: count('depends'), refuse: count('refuse'), total: all.length }
    const some = connections.filter(({ verdict }) => verdict !== 'refuse').length
    expect(summary).toEqual({ connections: { some, total: 8 }, tools, unknown: 2, complete: true })
  }
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20)
})

test('the tools of a connection that was listed at its own endpoint alone are those of its pins', async () => {
  await using server = localServer(async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method } = (await request.json()) as { id?: number; method: string }
    if (id === undefined) return new Response(null, { status: 202 })
    const serverInfo = { name: 's', version: '1' }
    const greeting = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo }
    const tools = [{ name: 'far', inputSchema: { type: 'object' } }]
    return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? greeting : { tools } })
  })
  const other = await createTestPlatform({ sources: [world], upstream: localUpstream() })
  const init = { method: 'PUT', headers: bearer(ada), body: JSON.stringify({ mcpUrl: server.url.href }) }
  expect((await other.fetch('/connect/acme/far', init)).status).toBe(201)
  const toolsOf = async () => {
    const { connections } = await question<Coverage>(other, ada, 'coverage', { namespace: 'acme' })
    return connections.find(({ connectionId }) => connectionId === 'far')?.tools?.map(({ name }) => name)
  }
  expect(await toolsOf()).toBeUndefined()
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
  await (await other.fetch('/connect/acme/far/mcp', { ...init, method: 'POST', body: list })).text()
  expect(await toolsOf()).toEqual(['far'])
})

describe('what is shown', () => {
  test('is what the caller sees, whatever the subject may see', async () => {
    expect(idsOf(await cover(eve, {}))).toEqual(['crm', 'crm-eu', 'mail', 'spare'].map((id) => `eves/${id}`))
    expect(idsOf(await cover(operator, {}))).toHaveLength(12)
    const narrow = await mintToken(platform.fetch, ada, {
      policy: [{ namespaces: 'acme', metadata: { team: 'sales' }, rpcReqMatch: { 'params.name': '^find' } }],
    })
    const child = await mintToken(platform.fetch, narrow)
    for (const body of [{}, { token: child }, { policy: [{ operations: 'execute' }] }]) {
      const { connections } = await cover(narrow, body)
      expect(connections.map(({ connectionId, tools }) => [connectionId, tools?.map(({ name }) => name)])).toEqual([
        ['crm', ['find', 'find.all']],
        ['mail', ['find', 'find.all']],
      ])
    }
    // Ada sees what her token does not.
    expect((await cover(ada, { token: narrow })).summary?.connections).toEqual({ some: 2, total: 8 })
    // It may neither read nor call a connection, or may read but not see tools.
    const writer = await mintToken(platform.fetch, ada, { policy: [{ operations: 'write' }] })
    expect(idsOf(await cover(writer, {}))).toEqual([])
    const reader = await mintToken(platform.fetch, ada, { policy: [{ operations: 'read' }] })
    expect((await cover(reader, {})).summary).toMatchObject({ tools: { total: 0 }, unknown: 8 })
  })

  test('is of one namespace, where that is named', async () => {
    expect(idsOf(await cover(ada, { namespace: 'lab' }))).toHaveLength(4)
    for (const namespace of ['eves', 'gone'])
      expect(await cover(ada, { namespace })).toEqual({ ...(await cover(ada, { namespace: 'nowhere' })) })
  })

  test('comes in pages, of which the first has the summary', async () => {
    const policy = [{ rpcReqMatch: { 'params.name': '^find$' } }]
    const whole = await cover(ada, { policy })
    let [cursor, found]: [string | null | undefined, string[]] = [undefined, []]
    do {
      const page: Coverage = await cover(ada, { policy, limit: 3, ...(cursor !== undefined && { cursor }) })
      expect(page.summary).toEqual(cursor === undefined ? whole.summary : null)
      found = [...found, ...idsOf(page)]
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(found).toEqual(idsOf(whole))
  })

  test('a cursor is bound to its caller, subject and namespace', async () => {
    const { nextCursor: cursor } = await cover(ada, { limit: 1 })
    for (const [key, body] of [
      [operator, { cursor }],
      [ada, { cursor, namespace: 'acme' }],
      [ada, { cursor, policy: [{ ttl: '1h' }] }],
      [ada, { cursor: 'x' }],
    ] as const) {
      const { status, text } = await ask(platform, key, '/tokens/coverage', body)
      expect([status, JSON.parse(text).message]).toEqual([400, expect.stringMatching(/^cursor: /)])
    }
  })
})

test('it stops at its budget, says so, and goes on with the next page', async () => {
  const names = Array.from({ length: 300 }, (_, index) => ({ name: `tool-${index}`, inputSchema: { type: 'object' } }))
  const namespace = 'big'
  const own = await createTestPlatform({
    sources: [
      source('big.json', {
        namespaces: [{ namespace, userId: 'ada' }],
        apiKeys: [{ userId: 'ada', key: ada }],
        servers: [
          { qualifiedName: 'big/tools', displayName: '', description: '', remote: true, connections: [], tools: names },
        ],
        connections: Array.from({ length: 30 }, (_, index) => ({
          ...{ namespace, connectionId: `c${index + 10}`, mcpUrl: 'https://x.example.com', metadata: {} },
          ...{ mock: { enabled: true }, server: 'big/tools' },
        })),
      }),
    ],
  })
  let body: object = { limit: 100 }
  const found: string[] = []
  for (let pages = 0; pages < 10; pages += 1) {
    const { summary, connections, nextCursor } = await question<Coverage>(own, ada, 'coverage', body)
    if (pages === 0) expect(summary).toMatchObject({ tools: { total: 2000 }, complete: false })
    found.push(...connections.map(({ connectionId }) => connectionId))
    if (nextCursor === null) break
    body = { limit: 100, cursor: nextCursor }
  }
  expect(found).toEqual(Array.from({ length: 30 }, (_, index) => `c${index + 10}`))
})

test('a page that has no time left has one connection, and goes on', async () => {
  const own = await createTestPlatform({ sources: [world] })
  let reads = 0
  let late: TestPlatform | undefined
  const { store } = own
  const slow = {
    ...store,
    getMany: (keys: Parameters<typeof store.getMany>[0]) => {
      // Each read takes a second.
      reads += 1
      if (late !== undefined) late.now += 1001
      return store.getMany(keys)
    },
  }
  const platformOfSlow = await createTestPlatform({ store: slow, sources: [world] })
  late = platformOfSlow
  const found: string[] = []
  let cursor: string | null | undefined
  for (let pages = 0; pages < 20 && cursor !== null; pages += 1) {
    const page: Coverage = await question<Coverage>(
      platformOfSlow,
      ada,
      'coverage',
      cursor === undefined ? {} : { cursor },
    )
    if (cursor === undefined) expect(page.summary?.complete).toBe(false)
    found.push(...idsOf(page))
    cursor = page.nextCursor
  }
  expect(reads).toBeGreaterThan(8)
  expect(found).toEqual(idsOf(await cover(ada, {})))
})
