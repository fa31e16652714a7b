/** Calls that wait for one another at an upstream that is told what to do. */

import { describe, expect, test } from 'bun:test'
import type { AuthorizedConnection } from '../../../src/auth/authorizer.ts'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { leadingSpacesMax } from '../../../src/features/gateway/client-response.ts'
import { parsingMessage } from '../../../src/features/gateway/message.ts'
import { createProxy } from '../../../src/features/gateway/proxy.ts'
import { createSessions } from '../../../src/features/gateway/sessions.ts'
import type { UpstreamCall } from '../../../src/features/gateway/upstream-call.ts'
import { concurrentCallsMax, responseInOnePieceBytesMax, upstreamSessionIdCharsMax } from '../../../src/limits.ts'
import type { Connection, ConnectionStatus } from '../../../src/model/connection.ts'
import { drained } from '../../../src/schema/steps.ts'
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, seed } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'
import { connection } from '../connections/world.ts'

test('two who waited for one session that failed are told of it, each under its own id', async () => {
  let waiting = Promise.withResolvers<never>()
  let asked = 0
  let now = 0
  // Its owner has paid for what it did whenever it is asked.
  const time = new Paces(
    clockOf(() => {
      now += 60_000
      return now
    }),
  )
  const platform = await createTestPlatform({
    fairness: { ...createFairness(), time },
    upstream: {
      send() {
        asked += 1
        return waiting.promise
      },
    },
  })
  const credentials = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
  const greeted = platform.fetch('/connect/ada/tools', {
    method: 'PUT',
    headers: credentials,
    body: JSON.stringify({ mcpUrl: 'https://tools.example.com/mcp' }),
  })
  await until(() => asked > 0)
  waiting.reject(new UpstreamError('down', 'it takes no connection'))
  expect((await greeted).status).toBe(201)

  const call = async (id: number) => {
    const response = await platform.fetch('/connect/ada/tools/mcp', {
      method: 'POST',
      headers: { ...credentials, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } }),
    })
    const { id: answered, error } = (await response.json()) as { id: number; error: { code: number } }
    return { status: response.status, id: answered, code: error.code }
  }
  asked = 0
  waiting = Promise.withResolvers<never>()
  const calls = [call(1), call(2)]
  await until(() => asked > 0)
  // The other one has come as far by then.
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  waiting.reject(new UpstreamError('down', 'it takes no connection'))
  const both = await Promise.all(calls)
  expect(asked).toBe(1)
  expect(both).toEqual([
    { status: 502, id: 1, code: -32_000 },
    { status: 502, id: 2, code: -32_000 },
  ])
})

test('one token takes a part of a connection’s places, and leaves some to others of its key', async () => {
  let asked = 0
  let held = Promise.withResolvers<UpstreamResponse>()
  const platform = await createTestPlatform({
    upstream: {
      send() {
        asked += 1
        return asked === 1 ? Promise.reject(new UpstreamError('down', 'it is not there yet')) : held.promise
      },
    },
  })
  const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
  const body = JSON.stringify({ mcpUrl: 'https://tools.example.com/mcp' })
  await platform.fetch('/connect/ada/tools', { method: 'PUT', headers: headers(sampleKeys.ada), body })
  // What needs no session: each is a request of its own.
  const ask = (credential: string, id: number | string) =>
    platform.fetch('/connect/ada/tools/mcp', {
      method: 'POST',
      headers: headers(credential),
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params: {} }),
    })
  const token = await mintToken(platform.fetch, sampleKeys.ada)
  asked = 1
  const all = await fill()
  const refused = await ask(token, 'next')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ id: 'next', error: { code: -32_000 } })
  // Neither has a child of it more; its own key and other keys have.
  expect((await ask(await mintToken(platform.fetch, token), 1)).status).toBe(429)
  const others = [sampleKeys.ada, sampleKeys.operator].map((key) => ask(key, 1))
  await until(() => asked > all.length + 2)
  const response = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode('{"result":{"protocolVersion":"1"}}'),
  }
  held.resolve(response)
  expect((await Promise.all([...all, ...others])).every(({ status }) => status === 200)).toBe(true)
  held = Promise.withResolvers()
  const again = await fill()
  held.resolve(response)
  expect((await Promise.all(again)).every(({ status }) => status === 200)).toBe(true)

  /** Takes all places of the token, one after the other: at once, a busy machine would refuse some of them its time. */
  async function fill(): Promise<Promise<Response>[]> {
    const calls: Promise<Response>[] = []
    for (const before = asked; calls.length < concurrentCallsMax / 4; ) {
      calls.push(Promise.resolve(ask(token, calls.length)))
      await until(() => asked === before + calls.length)
    }
    return calls
  }
})

const jsonType = { 'content-type': 'application/json' }
const bytesOf = (text: string) => new TextEncoder().encode(text)

const authorized = (one: Connection): AuthorizedConnection => ({
  namespace: 'acme',
  connectionId: one.connectionId,
  stored: { connection: one, privatePart: {}, bytes: new Uint8Array(), privateBytes: undefined },
})

/** A proxy by itself; `answer` is the upstream. */
function proxyTo(answer: (request: UpstreamRequest) => UpstreamResponse, memoryBytes = 1e9) {
  const seen = { statuses: [] as ConnectionStatus[], done: 0, sent: [] as UpstreamRequest[] }
  const upstream = {
    async send(request: UpstreamRequest) {
      seen.sent.push(request)
      return answer(request)
    },
  }
  const memory = new Shares(memoryBytes)
  const sendUpstream = createProxy(upstream, createSessions(seed('session key')), 1000)
  const send = (body: object, more: Partial<UpstreamCall> = {}) =>
    sendUpstream({
      allowance: {
        ...{ hold: () => () => {}, takeAnswer: () => () => {}, spend: () => {} },
        parse: async (_, work) => drained(work),
        run: (work) => drained(work),
      },
      progress: { isSent: false, isAnswered: false },
      connection: authorized(connection('one')),
      url: connection('one').mcpUrl ?? '',
      onStatus: (status) => void seen.statuses.push(status),
      connectionHeaders: {},
      credentials: undefined,
      signInUrl: () => undefined,
      isOfSignedInClient: false,
      sessionOwner: 'one',
      holder: { keyId: 'key', family: 'key' },
      memory,
      message: drained(parsingMessage(bytesOf(JSON.stringify({ jsonrpc: '2.0', id: 7, ...body })))),
      headers: new Headers(),
      via: undefined,
      signal: undefined,
      rewrite: undefined,
      watchAccess: () => () => {},
      requireAccess: () => undefined,
      restoreIdleTimeout: () => {
        seen.done += 1
      },
      ...more,
    })
  return { seen, send }
}
const initialize = { method: 'initialize', params: {} }
const failing = (error: Error) => () => {
  throw error
}
const answering =
  (status: number, headers: Record<string, string> = jsonType, body = '{"jsonrpc":"2.0","id":7,"result":{}}') =>
  (): UpstreamResponse => ({ status, headers, body: bytesOf(body) })

describe('an upstream that does not answer as it should is told, and what it says of the connection', () => {
  const late = new UpstreamError('late', 'no answer')
  const unauthorized = { state: 'auth_required', authorizationUrl: 'https://a.example.com/go' } as const
  const rows: [
    what: string,
    answer: () => UpstreamResponse,
    code: string,
    message: string,
    state: string | undefined,
  ][] = [
    ['it is down', failing(new UpstreamError('down', 'no one')), 'upstream_error', 'cannot be used: no one', 'error'],
    ['it is late', failing(late), 'upstream_timeout', 'The MCP server is too slow: no answer', undefined],
    ['there is no room', failing(new UpstreamError('busy', 'full')), 'rate_limited', 'full; try again', undefined],
    [
      'the client left',
      failing(new UpstreamError('gone', 'x')),
      'upstream_error',
      'The client disconnected',
      undefined,
    ],
    ['it wants authorization', answering(401), 'upstream_unauthorized', 'requires a sign-in', 'auth_required'],
    [
      'it compresses',
      answering(200, { ...jsonType, 'content-encoding': 'gzip' }),
      'upstream_error',
      'compressed',
      undefined,
    ],
    ['it redirects', answering(300), 'upstream_error', 'a redirect (300)', undefined],
    ['it redirects elsewhere', answering(399), 'upstream_error', 'a redirect (399)', undefined],
    ['it is broken', answering(500), 'upstream_error', 'The MCP server answered 500', undefined],
    [
      'it is broken, and says so in JSON-RPC',
      answering(500, jsonType, '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}'),
      'upstream_error',
      'The MCP server answered 500',
      undefined,
    ],
    ['it knows no such page', answering(404, {}, 'no'), 'upstream_error', 'answered 404 without JSON-RPC', undefined],
    ['it refuses without an error', answering(400), 'upstream_error', 'answered 400 without JSON-RPC', undefined],
    [
      'it speaks HTML',
      answering(200, { 'content-type': 'text/html' }),
      'upstream_error',
      'does not answer in MCP',
      undefined,
    ],
    [
      'it answers a list',
      answering(200, jsonType, '[{"id":7}]'),
      'upstream_error',
      'does not answer in MCP',
      undefined,
    ],
    ['it answers nothing', answering(200, jsonType, ''), 'upstream_error', 'does not answer in MCP', undefined],
  ]
  for (const [what, answer, code, message, state] of rows) {
    test(what, async () => {
      const { seen, send } = proxyTo(answer)
      const sent = send(initialize)
      await expect(sent).rejects.toThrow(message)
      await expect(sent).rejects.toMatchObject({ code, options: { id: 7 } })
      expect([seen.statuses.map((one) => one.state), seen.done]).toEqual([
        state === undefined ? [] : [state as never],
        1,
      ])
    })
  }

  test('what authorizes it is kept, and told', async () => {
    const { seen, send } = proxyTo(answering(401))
    const sent = send(initialize, { connection: authorized({ ...connection('one'), status: unauthorized }) })
    await expect(sent).rejects.toMatchObject({
      options: { data: { authorizationUrl: unauthorized.authorizationUrl } },
    })
    expect(seen.statuses).toEqual([unauthorized])
  })

  test('a bug is not hidden behind it', async () => {
    await expect(proxyTo(failing(new TypeError('a bug'))).send(initialize)).rejects.toThrow(TypeError)
  })
})

test('a connection that answers again is connected again, and one that is connected is left alone', async () => {
  const { seen, send } = proxyTo(answering(200))
  await send(initialize)
  expect(seen.statuses).toEqual([])
  const status = { state: 'error', message: 'it was down' } as const
  await send(initialize, { connection: authorized({ ...connection('one'), status }) })
  expect(seen.statuses).toEqual([{ state: 'connected' }])
  const refusing = proxyTo(answering(400, jsonType, '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}'))
  expect((await refusing.send(initialize, { connection: authorized({ ...connection('one'), status }) })).status).toBe(
    400,
  )
  expect(refusing.seen.statuses).toEqual([])
})

test('a compressed stream is refused, and let go', async () => {
  let isLetGo = false
  const body = new ReadableStream<Uint8Array>({
    cancel() {
      isLetGo = true
    },
  })
  const headers = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }
  const { send } = proxyTo(() => ({ status: 200, headers, body }))
  await expect(send(initialize)).rejects.toThrow('sent a compressed response')
  expect(isLetGo).toBe(true)
})

test('an answer without a body is one, and what came with it is let go', async () => {
  for (const status of [202, 204]) {
    let isLetGo = false
    const body = new ReadableStream<Uint8Array>({
      cancel() {
        isLetGo = true
      },
    })
    const { seen, send } = proxyTo(() => ({ status, headers: {}, body }))
    const response = await send(initialize)
    expect([response.status, isLetGo, seen.done]).toEqual([202, true, 1])
  }
})

describe('what is answered counts until it was read', () => {
  test('a stream: until it is over', async () => {
    let upstream: ReadableStreamDefaultController<Uint8Array> | undefined
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        upstream = controller
      },
    })
    const { seen, send } = proxyTo(() => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body }))
    const reading = (await send(initialize)).text()
    expect(seen.done).toBe(0)
    upstream?.enqueue(bytesOf('data: {}\n\n'))
    upstream?.close()
    expect([await reading, seen.done]).toEqual(['data: {}\n\n', 1])
  })

  test('a large head: as long as its stream is open', async () => {
    const heads = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, 'v'.repeat(90)]))
    const headers = { ...heads, 'content-type': 'text/event-stream' }
    const streams: ReadableStreamDefaultController<Uint8Array>[] = []
    // A quarter of it is one token's share: enough for one such stream.
    const { send } = proxyTo(
      () => ({ status: 200, headers, body: new ReadableStream({ start: (one) => void streams.push(one) }) }),
      4 * 80_000,
    )
    const reading = (await send(initialize)).text()
    await expect(send(initialize)).rejects.toThrow('This caller has too many unread responses open: read or close some')
    streams[0]?.close()
    await reading
    expect((await send(initialize)).status).toBe(200)
  })

  test('a stream: as long as it is open, also where it carries nothing', async () => {
    const streams: ReadableStreamDefaultController<Uint8Array>[] = []
    let cancelled = 0
    const cancel = () => {
      cancelled += 1
    }
    const headers = { 'content-type': 'text/event-stream' }
    // A quarter of it is one token's share: enough for two.
    const { send } = proxyTo(
      () => ({ status: 200, headers, body: new ReadableStream({ start: (one) => void streams.push(one), cancel }) }),
      4 * 80_000,
    )
    const reading = (await send(initialize)).text()
    const other = (await send(initialize)).text()
    await expect(send(initialize)).rejects.toThrow('This caller has too many unread responses open: read or close some')
    expect(cancelled).toBe(1)
    for (const stream of streams.slice(0, 2)) stream.close()
    await Promise.all([reading, other])
    expect((await send(initialize)).status).toBe(200)
  })

  test('a large answer: its memory until the last piece, and its client has only so long', async () => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 7, result: { a: 'x'.repeat(responseInOnePieceBytesMax) } })
    // A quarter of it is one token's share.
    const { seen, send } = proxyTo(answering(200, jsonType, text), text.length * 4)
    const first = await send(initialize)
    expect(seen.done).toBe(1)
    await expect(send(initialize)).rejects.toThrow('This caller has too many unread responses open: read or close some')
    expect(await first.text()).toBe(text)
    const left = await send(initialize)
    await left.body?.cancel()
    expect(await (await send(initialize)).text()).toBe(text)
  })

  test('a large error, too', async () => {
    const error = { code: -32000, message: 'x'.repeat(responseInOnePieceBytesMax) }
    const text = JSON.stringify({ jsonrpc: '2.0', id: 7, error })
    // A quarter of it is one token's share.
    const { send } = proxyTo(answering(400, jsonType, text), text.length * 4)
    const first = await send(initialize)
    await expect(send(initialize)).rejects.toThrow('too many unread responses')
    expect([first.status, await first.text()]).toEqual([400, text])
    expect((await send(initialize)).status).toBe(400)
  })

  test('one that goes out in one piece takes nothing', async () => {
    const text = (bytes: number) => `{"id":7,"result":"${'x'.repeat(bytes - 20)}"}`
    const { seen, send } = proxyTo(answering(200, jsonType, text(responseInOnePieceBytesMax)), 0)
    expect(text(responseInOnePieceBytesMax)).toHaveLength(responseInOnePieceBytesMax)
    expect([(await send(initialize)).status, seen.done]).toEqual([200, 1])
    const larger = proxyTo(answering(200, jsonType, text(responseInOnePieceBytesMax + 1)), 0)
    expect(await reasonOf(larger.send(initialize))).toContain('too many unread responses')
  })
})

describe('a session of our own', () => {
  const opening = (opened: UpstreamResponse) => {
    const { seen, send } = proxyTo(({ body }) =>
      String(body instanceof Uint8Array ? Buffer.from(body) : body).includes('"postern"') ? opened : answering(200)(),
    )
    const headersOf = async () => {
      await send({ method: 'ping' })
      const { 'mcp-session-id': id, 'mcp-protocol-version': version } = seen.sent.at(-1)?.headers ?? {}
      return { id, version, count: seen.sent.length }
    }
    return headersOf
  }
  const greeting = (status: number, protocolVersion: unknown, id?: string): UpstreamResponse => ({
    status,
    headers: { ...jsonType, ...(id !== undefined && { 'mcp-session-id': id }) },
    body: bytesOf(JSON.stringify({ jsonrpc: '2.0', id: 'postern', result: { protocolVersion } })),
  })

  test('speaks the revision that the upstream chose, and says that it is there', async () => {
    expect(await opening(greeting(200, '2025-06-18', 's'))()).toEqual({ id: 's', version: '2025-06-18', count: 3 })
  })
  test('is none where the upstream keeps none, in the revision it chose', async () => {
    expect(await opening(greeting(200, '2025-03-26'))()).toEqual({ id: undefined, version: '2025-03-26', count: 2 })
  })
  test('is there once the upstream has answered, whatever else it has to say', async () => {
    const events = [{ method: 'notifications/message' }, { id: 'postern', result: { protocolVersion: '2025-06-18' } }]
    const text = events.map((event) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...event })}\n\n`).join('')
    let isLetGo = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytesOf(text)),
      cancel() {
        isLetGo = true
      },
    })
    const headers = { 'content-type': 'text/event-stream', 'mcp-session-id': 's' }
    expect(await opening({ status: 200, headers, body })()).toEqual({ id: 's', version: '2025-06-18', count: 3 })
    expect(isLetGo).toBe(true)
  })
  test('is none where the upstream does not take the greeting', async () => {
    for (const status of [300, 400])
      expect(await opening(greeting(status, '2025-06-18', 's'))()).toEqual({
        id: undefined,
        version: '2025-11-25',
        count: 2,
      })
  })
  test('speaks our revision where the upstream’s is none', async () => {
    for (const revision of [5, null, 'x'.repeat(33)])
      expect((await opening(greeting(200, revision, 's'))()).version).toBe('2025-11-25')
    expect((await opening(greeting(200, 'x'.repeat(32), 's'))()).version).toBe('x'.repeat(32))
  })
})

test('an answer that is held gives its slot back once it was read, or left', async () => {
  const open = () => new ReadableStream<Uint8Array>()
  const streaming = (body: ReadableStream<Uint8Array>): UpstreamResponse => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body,
  })
  const large = JSON.stringify({ jsonrpc: '2.0', id: 7, result: 'x'.repeat(responseInOnePieceBytesMax) })
  let answer = () => streaming(open())
  const { send } = proxyTo(() => answer())
  for (let i = 1; i < concurrentCallsMax / 4; i += 1) await send(initialize)
  for (const one of [
    () => streaming(new Response('data: {}\n\n').body as ReadableStream<Uint8Array>),
    answering(200, jsonType, large),
  ]) {
    answer = one
    for (const leave of [(held: Response) => held.text(), (held: Response) => held.body?.cancel()]) {
      const held = await send(initialize)
      expect(await reasonOf(send(initialize))).toContain('too many concurrent')
      await leave(held)
    }
  }
  expect((await send(initialize)).status).toBe(200)
})

test('white space before an answer is passed on, so much of it and no other', async () => {
  const object = '{"jsonrpc":"2.0","id":7,"result":{}}'
  for (const space of [' ', '\n', '\r', '\t', ' '.repeat(leadingSpacesMax)]) {
    const response = await proxyTo(answering(200, jsonType, space + object)).send(initialize)
    expect(await response.text()).toBe(space + object)
  }
  for (const space of ['\v', '\f', '\u00a0', '\ufeff', ' '.repeat(leadingSpacesMax + 1)])
    expect(await reasonOf(proxyTo(answering(200, jsonType, space + object)).send(initialize))).toContain(
      'answer in MCP',
    )
})

test('a client whose session the upstream has forgotten is told to begin anew, and at no other answer', async () => {
  let status = 200
  const { send } = proxyTo(() => answering(status, { ...jsonType, 'mcp-session-id': 's' }, status < 300 ? '{}' : '')())
  const session = (await send(initialize)).headers.get('mcp-session-id') ?? ''
  const headers = new Headers({ 'mcp-session-id': session })
  const reasons: string[] = []
  for (status of [404, 403, 405]) reasons.push(await reasonOf(send({ method: 'ping' }, { headers })))
  status = 404
  reasons.push(await reasonOf(send(initialize)))
  expect(reasons).toEqual([
    'The session has ended: initialize again',
    'The MCP server answered 403 without JSON-RPC: check the URL and the headers of the connection',
    'The MCP server answered 405 without JSON-RPC: check the URL and the headers of the connection',
    'The MCP server answered 404 without JSON-RPC: check the URL and the headers of the connection',
  ])
})

test('an answer of no bytes is none, whether its tools are looked through or not', async () => {
  const { send } = proxyTo(() => ({ status: 200, headers: jsonType, body: undefined }))
  for (const rewrite of [undefined, async (text: string) => text])
    expect(await reasonOf(send(initialize, { rewrite }))).toBe(
      'The MCP server does not answer in MCP: check the URL of the connection',
    )
})

test('an error that cannot be rewritten is a failure of the upstream', async () => {
  const refusal = JSON.stringify({ jsonrpc: '2.0', id: 'x'.repeat(700), error: { code: 1, message: 'no' } })
  const rewrite = async () => {
    throw new SyntaxError('the id is too long')
  }
  const sending = proxyTo(answering(400, jsonType, refusal)).send(initialize, { rewrite })
  expect(await reasonOf(sending)).toBe('The MCP server does not answer in MCP: check the URL of the connection')
})

describe('a session that has ended', () => {
  test('is told to the client that has it, which may begin anew with it', async () => {
    const { seen, send } = proxyTo(answering(200))
    const headers = new Headers({ 'mcp-session-id': 'postern.altered' })
    expect(await reasonOf(send({ method: 'ping' }, { headers }))).toBe('The session has ended: initialize again')
    expect(seen.sent).toHaveLength(0)
    expect((await send(initialize, { headers })).status).toBe(200)
    expect(seen.sent.map((request) => request.headers['mcp-session-id'])).toEqual([undefined])
  })

  test('of ours is opened again, and what was asked is asked again; a call is not', async () => {
    let sessions = 0
    const methods: string[] = []
    const { send } = proxyTo(({ body, headers }) => {
      const { method } = JSON.parse(Buffer.from(body ?? '').toString()) as { method: string }
      methods.push(method)
      if (method === 'initialize') sessions += 1
      const id = `s${sessions}`
      if (method === 'initialize') return answering(200, { ...jsonType, 'mcp-session-id': id })()
      return headers['mcp-session-id'] === 's1' && !method.startsWith('notifications/')
        ? answering(404, {}, '')()
        : answering(200)()
    })
    const opening = ['initialize', 'notifications/initialized']
    expect((await send({ method: 'ping' })).status).toBe(200)
    expect(methods.splice(0)).toEqual([...opening, 'ping', ...opening, 'ping'])
    expect((await send({ method: 'ping' })).status).toBe(200)
    expect(methods.splice(0)).toEqual(['ping'])

    sessions = 0
    const call = { method: 'tools/call', params: { name: 'a' } }
    const again = { sessionOwner: 'another' }
    expect(await reasonOf(send(call, again))).toBe(
      'The MCP server had ended the session, and postern has opened a new one: call again',
    )
    expect(methods.splice(0)).toEqual([...opening, 'tools/call', ...opening])
    expect((await send(call, again)).status).toBe(200)
    expect(methods).toEqual(['tools/call'])
  })
})

describe('a server that had no sessions, and was started again with them', () => {
  const opening = ['initialize', 'notifications/initialized']
  const call = { method: 'tools/call', params: { name: 'a' } }

  function restartable() {
    const methods: string[] = []
    let hasSessions = false
    const { send } = proxyTo(({ body, headers }) => {
      const { method } = JSON.parse(Buffer.from(body ?? '').toString()) as { method: string }
      methods.push(method)
      if (method === 'initialize')
        return answering(200, { ...jsonType, ...(hasSessions && { 'mcp-session-id': 's' }) })()
      if (!hasSessions || headers['mcp-session-id'] === 's') return answering(200)()
      return answering(
        400,
        jsonType,
        JSON.stringify({ jsonrpc: '2.0', id: 7, error: { code: -32_000, message: 'no' } }),
      )()
    })
    return {
      methods,
      send,
      restart() {
        hasSessions = true
      },
    }
  }

  test('gets one, and is asked again', async () => {
    const { methods, send, restart } = restartable()
    expect((await send({ method: 'ping' })).status).toBe(200)
    expect(methods.splice(0)).toEqual(['initialize', 'ping'])
    restart()
    expect((await send({ method: 'ping' })).status).toBe(200)
    expect(methods.splice(0)).toEqual(['ping', ...opening, 'ping'])
    expect((await send(call)).status).toBe(200)
    expect(methods).toEqual(['tools/call'])
  })

  test('gets one for a call, which the caller makes again', async () => {
    const { methods, send, restart } = restartable()
    await send({ method: 'ping' })
    restart()
    methods.length = 0
    expect(await reasonOf(send(call))).toBe('The MCP server wants a session, and postern has opened one: call again')
    expect(methods.splice(0)).toEqual(['tools/call', ...opening])
    expect((await send(call)).status).toBe(200)
    expect(methods).toEqual(['tools/call'])
  })

  test('but one that still has none, and refuses for another reason, has its answer passed on', async () => {
    const refusal = { jsonrpc: '2.0', id: 7, error: { code: -32_602, message: 'no such tool' } }
    const { send } = proxyTo(({ body }) => {
      const { method } = JSON.parse(Buffer.from(body ?? '').toString()) as { method: string }
      return method === 'initialize' ? answering(200)() : answering(400, jsonType, JSON.stringify(refusal))()
    })
    const answer = await send(call)
    expect([answer.status, await answer.json()]).toEqual([400, refusal])
  })
})

test('a session id that is too long leaves nothing taken: neither slots nor memory, nor an open stream', async () => {
  const headers = { ...jsonType, 'mcp-session-id': 'x'.repeat(upstreamSessionIdCharsMax + 1) }
  const large = JSON.stringify({ jsonrpc: '2.0', id: 7, result: 'x'.repeat(responseInOnePieceBytesMax) })
  // A token may hold a quarter of what there is: one such response, and no second one while the first is held.
  const { seen, send } = proxyTo(answering(200, headers, large), 6 * large.length)
  for (let i = 0; i < 3; i += 1) expect(await reasonOf(send(initialize))).toContain('session id that is too long')
  expect(seen.done).toBe(3)

  let isCancelled = false
  const stream = new ReadableStream<Uint8Array>({
    cancel() {
      isCancelled = true
    },
  })
  const streaming = { ...headers, 'content-type': 'text/event-stream' }
  const open = proxyTo(() => ({ status: 200, headers: streaming, body: stream as ReadableStream<Uint8Array> }))
  expect(await reasonOf(open.send(initialize))).toContain('session id that is too long')
  expect([isCancelled, open.seen.done]).toEqual([true, 1])
})

test('a session id is not looked at where the answer has no session', async () => {
  const headers = { ...jsonType, 'mcp-session-id': 'x'.repeat(upstreamSessionIdCharsMax + 1) }
  expect(await reasonOf(proxyTo(answering(300, headers)).send(initialize))).toContain('a redirect (300)')
  // A session of the platform's own, which is kept.
  expect(await reasonOf(proxyTo(answering(200, headers)).send({ method: 'ping' }))).toContain(
    `session id has more than ${upstreamSessionIdCharsMax} characters`,
  )
  const longest = { ...jsonType, 'mcp-session-id': 'x'.repeat(upstreamSessionIdCharsMax) }
  const opened = await proxyTo(answering(299, longest)).send(initialize)
  expect(opened.headers.get('mcp-session-id')).toStartWith('postern.')
})

function reasonOf(sending: Promise<Response>): Promise<string> {
  return sending.then(
    () => 'it was answered',
    (error: Error) => error.message,
  )
}

test('a call that gets no slot is over at once: its request has its timeout back', async () => {
  const headers = { 'content-type': 'text/event-stream' }
  const { seen, send } = proxyTo(() => ({ status: 200, headers, body: new ReadableStream<Uint8Array>() }))
  // Neither needs a session of the platform's own.
  for (let i = 0; i < concurrentCallsMax / 4; i += 1) await send(initialize)
  expect(seen.done).toBe(0)
  expect(await reasonOf(send(initialize))).toContain('too many concurrent')
  expect(seen.done).toBe(1)
})

test('a client that leaves ends its own call, and not the greeting that others may wait for', async () => {
  const { seen, send } = proxyTo(answering(200, { ...jsonType, 'mcp-session-id': 's' }))
  const { signal } = new AbortController()
  await send({ method: 'ping' }, { signal: () => signal })
  expect(seen.sent.map((request) => request.signal?.())).toEqual([undefined, undefined, signal])
})
