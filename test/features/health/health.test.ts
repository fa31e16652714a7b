/** How well connections are: what is said of each, to whom, and what a test of one changes (contract, 22). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { healthOf } from '../../../src/features/health/health.ts'
import type { Health, HealthPage } from '../../../src/model/health.ts'
import { connectionChange, findConnection, type StoredConnection } from '../../../src/storage/connections.ts'
import { type Upstream, UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { createTestPlatform, source, startOfTime, type TestPlatform } from '../../support/platform.ts'

const ada = 'a-key-of-ada-for-health-00000000001'
const eve = 'a-key-of-eve-for-health-00000000001'
const operator = 'a-key-of-an-operator-for-health-001'
const day = 24 * 3600 * 1000
const mcpUrl = 'https://x.example.com/mcp'

const world = source('acme.json', {
  namespaces: [
    { namespace: 'acme', userId: 'ada' },
    { namespace: 'eves', userId: 'eve' },
  ],
  servers: [
    { qualifiedName: 'acme/tools', displayName: '', description: '', remote: true, connections: [], tools: [] },
  ],
  connections: [
    { namespace: 'acme', connectionId: 'far', mcpUrl, metadata: { team: 'ops' } },
    { namespace: 'acme', connectionId: 'mock', mcpUrl, mock: { enabled: true }, server: 'acme/tools' },
    { namespace: 'eves', connectionId: 'far', mcpUrl },
  ],
  apiKeys: [
    { userId: 'ada', key: ada },
    { userId: 'eve', key: eve },
    { userId: 'root', key: operator, operator: true },
  ],
})

let platform: TestPlatform
let api: Api
let answer: 'works' | 'is down' | 'wants a sign-in'
let sent = 0
let onSent: () => Promise<void> = async () => {}
let asked: string[] = []
const upstream: Upstream = {
  async send({ url, body }) {
    sent += 1
    asked.push(url)
    await onSent()
    if (answer === 'is down') throw new UpstreamError('down', 'connection refused')
    if (answer === 'wants a sign-in') return { status: 401, headers: {}, body: undefined }
    const { id } = JSON.parse(String(body ?? '{}'))
    if (id === undefined) return { status: 202, headers: {}, body: undefined }
    const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'far', version: '1' } }
    const text = JSON.stringify({ jsonrpc: '2.0', id, result })
    return { status: 200, headers: { 'content-type': 'application/json' }, body: new Uint8Array(Buffer.from(text)) }
  },
}
beforeEach(async () => {
  answer = 'works'
  sent = 0
  platform = await createTestPlatform({ sources: [world], upstream })
  api = apiOf(platform.fetch, ada)
})

const healthOfIds = async (who: Api, ids: string) => {
  const { status, body } = await who(`GET /connect/acme/.health?ids=${ids}`)
  return status === 200
    ? (body as HealthPage).connections.map(({ connectionId, level }) => [connectionId, level])
    : status
}

/** A connection with this status. */
async function setStatus(id: string, status: StoredConnection['connection']['status']): Promise<void> {
  const ref = { namespace: 'acme', connectionId: id }
  const before = await findConnection(platform.store, 'acme', id)
  if (before === undefined) throw new Error(`${id} is not there`)
  const { connection, privatePart } = before
  await platform.store.commit(connectionChange(ref, before, { connection: { ...connection, status }, privatePart }))
}

const statuses: [Partial<StoredConnection['connection']>, object, Partial<Health>][] = [
  [{ status: { state: 'connected' } }, {}, { level: 'unknown', summary: 'Not contacted yet' }],
  [{ status: { state: 'connected' } }, { contactedAt: startOfTime - day }, { level: 'ok', action: null }],
  [
    { status: { state: 'connected' } },
    { contactedAt: startOfTime - day - 1 },
    { level: 'unknown', since: new Date(startOfTime - day - 1).toISOString() },
  ],
  [{ status: { state: 'connected' }, mock: { enabled: true } }, {}, { level: 'ok', summary: 'Mocked' }],
  [
    { status: { state: 'error', message: 'no such host' } },
    { statusSince: startOfTime },
    { level: 'down', summary: 'no such host', since: new Date(startOfTime).toISOString() },
  ],
  [{ status: { state: 'disconnected' } }, {}, { level: 'down', summary: 'Could not be reached' }],
  [
    { status: { state: 'auth_required', setupUrl: 'https://p/setup' } },
    { contactedAt: startOfTime },
    { level: 'attention', action: { kind: 'sign-in', label: 'Sign in', href: 'https://p/setup' } },
  ],
  [
    { status: { state: 'auth_required' } },
    {},
    { level: 'attention', action: { kind: 'sign-in', label: 'Sign in', href: 'https://p/connect/a/b/setup' } },
  ],
]
for (const [connection, privatePart, expected] of statuses)
  test(`${JSON.stringify(connection)} ${JSON.stringify(privatePart)}`, () => {
    const stored = { connection, privatePart } as unknown as StoredConnection
    const ref = { namespace: 'a', connectionId: 'b' }
    const about = { now: startOfTime, setupUrl: 'https://p/connect/a/b/setup' }
    expect(healthOf(ref, stored, { ...about, hasChanged: false })).toMatchObject(expected)
    const changed = healthOf(ref, stored, { ...about, hasChanged: true })
    const isWell = connection.status?.state === 'connected'
    expect(changed.action?.kind === 'review-pins').toBe(isWell)
  })

describe('health', () => {
  test('is of connections that the caller may read', async () => {
    expect(await healthOfIds(api, 'far,mock,none')).toEqual([
      ['far', 'unknown'],
      ['mock', 'ok'],
    ])
    expect(await healthOfIds(apiOf(platform.fetch, eve), 'far')).toBe(404)
    const narrow = await mintToken(platform.fetch, ada, { policy: [{ metadata: { team: 'ops' } }] })
    expect(await healthOfIds(api.as(narrow), 'far,mock')).toEqual([['far', 'unknown']])
    const caller = await mintToken(platform.fetch, ada, { policy: [{ operations: 'execute' }] })
    expect(await healthOfIds(api.as(caller), 'far')).toBe(403)
  })

  test('without ids is of those that need somebody, in pages', async () => {
    expect((await api('GET /connect/acme/.health')).body).toEqual({ connections: [], nextCursor: null })
    await setStatus('far', { state: 'error', message: 'broken' })
    await setStatus('mock', { state: 'error', message: 'broken' })
    const first = (await api('GET /connect/acme/.health?limit=1')).body
    expect(first.connections.map(({ connectionId }: Health) => connectionId)).toEqual(['far'])
    const second = (await api(`GET /connect/acme/.health?limit=1&cursor=${first.nextCursor}`)).body
    expect([second.connections.length, second.connections[0].connectionId, second.nextCursor]).toEqual([
      1,
      'mock',
      null,
    ])
    for (const query of ['ids=a%20b', 'ids=a&limit=1', 'limit=0', 'limit=101', 'cursor=x', `ids=${'a,'.repeat(100)}a`])
      expect((await api(`GET /connect/acme/.health?${query}`)).status).toBe(400)
  })
})

test('nothing is looked at for a client that has gone', async () => {
  const gone = { headers: { authorization: `Bearer ${ada}` }, signal: AbortSignal.abort() }
  for (const path of ['/connect/acme/.health', '/overview']) {
    const { status, body } = await platform.fetch(path, gone).then(async (response) => ({
      status: response.status,
      body: await response.json(),
    }))
    expect({ path, status, body }).toMatchObject({
      path,
      status: 429,
      body: { message: expect.stringContaining('The client disconnected') },
    })
  }
})

describe('a test of a connection', () => {
  test('contacts its server once, and says how it is', async () => {
    expect((await api('POST /connect/acme/far/.test')).body).toEqual({
      ...{ connectionId: 'far', level: 'ok', summary: 'Connected', since: null, action: null },
    })
    expect(sent).toBeGreaterThan(0)
    expect(await healthOfIds(api, 'far')).toEqual([['far', 'ok']])
    expect((await api('GET /connect/acme/far')).body.serverInfo).toEqual({ name: 'far', version: '1' })
    platform.now += day + 1
    expect(await healthOfIds(api, 'far')).toEqual([['far', 'unknown']])
    answer = 'is down'
    const down = (await api('POST /connect/acme/far/.test')).body
    expect([down.level, down.since, down.action.kind]).toEqual(['down', new Date(platform.now).toISOString(), 'test'])
    platform.now += 1000
    // It is down since then.
    expect((await api('POST /connect/acme/far/.test')).body.since).toBe(down.since)
    answer = 'wants a sign-in'
    expect((await api('POST /connect/acme/far/.test')).body).toMatchObject({
      ...{ level: 'attention', action: { kind: 'sign-in', href: expect.stringContaining('/connect/acme/far/setup') } },
    })
  })

  test('is for those who may call it, and contacts no server for a mock', async () => {
    expect((await apiOf(platform.fetch, eve)('POST /connect/acme/far/.test')).status).toBe(404)
    const reader = await mintToken(platform.fetch, ada, { policy: [{ operations: 'read' }] })
    expect((await api.as(reader)('POST /connect/acme/far/.test')).status).toBe(403)
    expect((await api('POST /connect/acme/mock/.test', '{"x":')).status).toBe(400)
    const caller = await mintToken(platform.fetch, ada, { policy: [{ operations: 'execute' }] })
    expect(sent).toBe(0)
    expect((await api.as(caller)('POST /connect/acme/mock/.test')).body.summary).toBe('Mocked')
    expect(sent).toBe(0)
    expect((await api.as(caller)('POST /connect/acme/far/.test')).status).toBe(200)
    expect(platform.audited.filter(({ event }) => event === 'connection.changed')).toEqual([])
  })
})

describe('a test of a connection that waits for its server', () => {
  const meanwhile = async (change: () => Promise<unknown>) => {
    onSent = async () => {
      onSent = async () => {}
      await change()
    }
    const tested = await api('POST /connect/team/far/.test')
    return [tested.status, JSON.stringify(tested.body).includes('level')]
  }
  const team = apiOf((path, init) => platform.fetch(path, init), operator)
  beforeEach(async () => {
    expect((await team('PUT /organizations/org', { owner: 'root' })).status).toBe(201)
    expect((await team('PUT /namespaces/team', { organizationId: 'org' })).status).toBe(201)
    expect((await team('PUT /organizations/org/members/ada', { role: 'member' })).status).toBe(200)
    expect((await team('PUT /connect/team/far', { mcpUrl })).status).toBe(201)
    sent = 0
  })

  test('says nothing of it to a member who was removed', async () => {
    expect(await meanwhile(() => team('DELETE /organizations/org/members/ada'))).toEqual([404, false])
    expect((await team('POST /connect/team/far/.test')).body.level).toBe('ok')
  })

  test('does not contact the server of others who have its name by then', async () => {
    const urls: string[] = []
    const remade = async () => {
      expect((await team('DELETE /organizations/org/members/ada')).status).toBe(200)
      expect((await team('DELETE /connect/team/far')).status).toBe(200)
      const made = { mcpUrl: 'https://theirs.example.com/mcp', headers: { 'x-secret': 's' } }
      expect((await team('PUT /connect/team/far', made)).status).toBe(201)
      asked = urls
    }
    expect(await meanwhile(remade)).toEqual([404, false])
    expect(urls).not.toContain('https://theirs.example.com/mcp')
  })
})

describe('the overview', () => {
  test('counts what the caller may read, and lists what needs somebody', async () => {
    await setStatus('far', { state: 'error', message: 'broken' })
    const { body } = await api('GET /overview')
    expect(body).toMatchObject({
      connections: { total: 2, ok: 1, attention: 0, down: 1, unknown: 0, off: 0, complete: true },
      attention: [{ namespace: 'acme', connectionId: 'far', level: 'down', summary: 'broken' }],
      calls: null,
      store: { ok: true },
    })
    expect(body.store).toEqual({ ok: true })
    expect((await apiOf(platform.fetch, eve)('GET /overview')).body.connections).toMatchObject({ total: 1, unknown: 1 })
    const { store } = (await apiOf(platform.fetch, operator)('GET /overview')).body
    expect(store).toEqual({ ok: true, kind: 'embedded', freeBytes: expect.any(Number) })
  })
})
