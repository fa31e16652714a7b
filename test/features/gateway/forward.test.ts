/** The walk of a message through a connection: what is asked again, and what a connection cannot do. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { bodyMemoryFactor, parsedResponseMemoryFactor } from '../../../src/limits.ts'
import type { ConnectionStatus } from '../../../src/model/connection.ts'
import type { Tracing } from '../../../src/ops/tracing.ts'
import { connectionChange, findConnection } from '../../../src/storage/connections.ts'
import type { Store } from '../../../src/storage/store.ts'
import type { Upstream, UpstreamRequest, UpstreamResponse } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'
import { connection } from '../connections/world.ts'

let platform: TestPlatform
let answer: (request: UpstreamRequest) => UpstreamResponse
let sent = 0
let urls: string[] = []

beforeEach(async () => {
  sent = 0
  urls = []
  platform = await createTestPlatform({
    upstream: {
      async send(request) {
        sent += 1
        urls.push(request.url)
        return answer(request)
      },
    },
  })
})

async function connect(status: ConnectionStatus, more: object = {}): Promise<void> {
  const made = { ...connection('one'), status, ...more }
  await platform.store.commit(
    connectionChange({ namespace: 'ada', connectionId: 'one' }, undefined, { connection: made, privatePart: {} }),
  )
}
async function send(credential: string, more: Record<string, string> = {}) {
  const response = await platform.fetch('/connect/ada/one/mcp', {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json', ...more },
    body: JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'initialize', params: {} }),
  })
  return { status: response.status, text: await response.text() }
}

test('a credential that ends while the upstream answers is told nothing of the answer', async () => {
  await connect({ state: 'connected' })
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
  let isLetGo = false
  let later = 9000
  answer = () => {
    platform.now += later
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('data: {"secret":1}\n\n')),
      pull: (controller) => controller.close(),
      cancel() {
        isLetGo = true
      },
    })
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
  }
  expect(await send(token)).toEqual({ status: 200, text: 'data: {"secret":1}\n\n' })
  later = 2000
  const ended = await send(token)
  expect([ended.status, ended.text.includes('secret'), isLetGo]).toEqual([401, false, true])
})

test('a tool over plain HTTP gives no result to a credential that ends while its stream is read', async () => {
  await connect({ state: 'connected' })
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
  let later = 0
  answer = ({ body }) => {
    const { id, method } = JSON.parse(typeof body === 'string' ? body : Buffer.from(body ?? []).toString())
    if (method === 'initialize') return { status: 400, headers: {}, body: undefined }
    const result = method === 'tools/list' ? { tools: [{ name: 'SECRET' }] } : { content: [], secret: 'SECRET' }
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      platform.now += later
      controller.enqueue(Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`))
      controller.close()
    }
    // Not before it is read: the head is there by then.
    const stream = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 })
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: stream }
  }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const requests = [
    ['/connect/ada/one/.tools'],
    ['/connect/ada/one/.tools/SECRET'],
    ['/connect/ada/one/.tools/x', '{}'],
  ]
  for (const [ms, status] of [
    [0, 200],
    [11_000, 401],
  ] as const) {
    for (const [path = '', body] of requests) {
      platform.now = startOfTime
      later = ms
      const response = await platform.fetch(path, { ...(body && { method: 'POST', body }), headers })
      expect({ path, status: response.status, hasSecret: (await response.text()).includes('SECRET') }).toEqual({
        ...{ path, status, hasSecret: status === 200 },
      })
    }
  }
})

test('an open stream ends with what is wrong with its credential, and with no detail of a fault of ours', async () => {
  const ticks: (() => void)[] = []
  const store = openMemoryStore()
  let isBroken = false
  const faulty: Store = {
    ...store,
    get: (key) => (isBroken ? Promise.reject(new Error('SECRET detail')) : store.get(key)),
  }
  platform = await createTestPlatform({
    store: faulty,
    every: (_, act) => {
      ticks.push(act)
      return () => {}
    },
    fastLane: false,
    upstream: {
      send: async () => ({
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: new ReadableStream<Uint8Array>({ start: (one) => one.enqueue(Buffer.from('data: {"a":1}\n\n')) }),
      }),
    },
  })
  const cases: [what: string, change: () => void, said: string][] = [
    ['a token that has expired', () => (platform.now += 11_000), 'The API key or token is missing or invalid'],
    [
      'a store that cannot be asked',
      () => (isBroken = true),
      'postern cannot check right now whether this stream may continue',
    ],
  ]
  await connect({ state: 'connected' })
  for (const [what, change, said] of cases) {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
    const streaming = send(token)
    await until(() => ticks.length === 1)
    change()
    for (const tick of ticks.splice(0)) tick()
    const { text } = await streaming
    expect({ what, text }).toEqual({ what, text: expect.stringContaining(said) })
    expect(text).not.toContain('SECRET')
  }
})

test('a connection that gets another URL while the policy is evaluated is called at that URL', async () => {
  await connect({ state: 'connected' }, { mcpUrl: 'https://old.example/mcp' })
  answer = ({ body }) =>
    String(body).includes('initialize')
      ? { status: 400, headers: {}, body: undefined }
      : { status: 202, headers: {}, body: undefined }
  const costly = Array.from({ length: 3 }, (_, index) => ({
    rpcReqMatch: { 'params.name': `(a|b)*a(a|b){${200 + index}}[a-c]*` },
  }))
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: costly })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 3,
    method: 'tools/call',
    params: { name: 'ab'.repeat(500) },
  })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answering = platform.fetch('/connect/ada/one/mcp', { method: 'POST', headers, body })
  // The body has been read, and the evaluation has begun.
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(urls).toEqual([])
  const before = await findConnection(platform.store, 'ada', 'one')
  const moved = { ...connection('one'), status: { state: 'connected' }, mcpUrl: 'https://new.example/mcp' } as const
  await platform.store.commit(
    connectionChange({ namespace: 'ada', connectionId: 'one' }, before, { connection: moved, privatePart: {} }),
  )
  platform.now += 100
  expect([(await answering).status, new Set(urls)]).toEqual([202, new Set(['https://new.example/mcp'])])
})

test('a list is narrowed while its caller has memory for it, which it then has again', async () => {
  const text = (characters: number) => {
    const [before, after] = ['{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a","title":"', '"}]}}']
    return before + 'a'.repeat(characters - before.length - after.length) + after
  }
  let characters = 5000
  const upstream: Upstream = {
    async send({ body }) {
      const isGreeting = Buffer.from(body ?? '')
        .toString()
        .includes('"initialize"')
      if (isGreeting) return { status: 400, headers: {}, body: undefined }
      return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(text(characters)) }
    },
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
  // A quarter is one caller's.
  const bytes = 5000 * parsedResponseMemoryFactor + body.length * bodyMemoryFactor
  platform = await createTestPlatform({
    upstream,
    fairness: { ...createFairness(), memory: new Shares(4 * bytes) },
  })
  await connect({ state: 'connected' })
  const policy = [{ rpcReqMatch: { 'params.name': '^a' } }]
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
  const list = () =>
    platform.fetch('/connect/ada/one/mcp', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    })
  for (let i = 0; i < 3; i += 1) expect(await (await list()).text()).toBe(text(5000))
  characters += 1
  const refused = await list()
  expect([refused.status, await refused.json()]).toMatchObject([
    429,
    {
      id: 3,
      error: {
        message: 'This caller has too many unread responses open: read or close some; try again in 1 s',
      },
    },
  ])
  characters -= 1
  expect((await list()).status).toBe(200)
})

describe('nothing is sent', () => {
  const http = { headers: { 'X-Key': { label: 'Key' } } }
  const missing = { headers: ['X-Key'], query: [] }
  const notContacted = expect.stringContaining('test it in the console or with `postern connection test`')
  const notDialled = expect.stringContaining('is an uplink, which postern does not support')
  const rows: [what: string, status: ConnectionStatus, more: object, answered: number, error: object][] = [
    [
      'where the connection waits for input, and what it waits for is told',
      { state: 'input_required', http, missing },
      {},
      409,
      { code: -32_002, message: 'The connection needs values before it can be used (X-Key)', data: { http, missing } },
    ],
    ['where it is disconnected', { state: 'disconnected' }, {}, 502, { code: -32_000, message: notContacted }],
    ['through an uplink', { state: 'connected' }, { transport: 'uplink' }, 502, { code: -32_000, message: notDialled }],
    ['to no URL', { state: 'connected' }, { mcpUrl: null }, 502, { code: -32_000 }],
    ['for a mock of no server', { state: 'connected' }, { mock: { enabled: true } }, 502, { code: -32_000 }],
  ]
  for (const [what, status, more, answered, error] of rows) {
    test(what, async () => {
      await connect(status, more)
      const given = await send(sampleKeys.ada)
      expect(given.status).toBe(answered)
      expect(JSON.parse(given.text)).toMatchObject({ id: 3, error })
      expect(sent).toBe(0)
    })
  }

  test('that came through us before', async () => {
    await connect({ state: 'connected' })
    answer = () => ({ status: 202, headers: {}, body: undefined })
    expect((await send(sampleKeys.ada, { via: '1.1 other, 1.1 postern-test' })).status).toBe(508)
    expect(sent).toBe(0)
    expect((await send(sampleKeys.ada, { via: '1.1 other' })).status).toBe(202)
    expect(sent).toBe(1)
  })
})

test('each message is a span within that of its request, named after its tool, with the trace of its sender', async () => {
  const spans: object[] = []
  const tracing: Tracing = {
    async span(options, work) {
      spans.push(options)
      return work()
    },
    headers: () => ({}),
    close: async () => {},
  }
  const traced = await createTestPlatform({ tracing })
  const _meta = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
  const response = await apiOf(traced.fetch, sampleKeys.ada)('POST /connect/northwind/weather-ada/mcp', {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'get_current_conditions', arguments: { latitude: 45.3, longitude: -121.7 }, _meta },
  })
  expect(response.status).toBe(200)
  expect(spans).toEqual([
    expect.objectContaining({ name: 'POST /connect/{namespace}/{connectionId}/mcp', kind: 'SERVER' }),
    {
      name: 'tools/call get_current_conditions',
      kind: 'INTERNAL',
      attributes: { 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'get_current_conditions' },
      given: _meta,
    },
  ])
})
