/** Sessions through one endpoint: what a server asks reaches its client and nobody else, and replies go back once. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, localServer, localUpstream } from '../../support/upstream.ts'

interface Sent {
  readonly session: string | null
  readonly body: {
    readonly id?: unknown
    readonly method?: string
    readonly params?: Record<string, unknown>
    readonly result?: unknown
  }
}
let seen: Sent[] = []
let live = new Set<string>()
let sessions = 0
/** Called with each reply that reaches the server. */
let onReply: (sent: Sent) => void = () => {}
let upstream: Bun.Server<undefined>
let platform: TestPlatform

beforeAll(() => {
  upstream = localServer(async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const session = request.headers.get('mcp-session-id')
    const body = (await request.json()) as Sent['body']
    seen.push({ session, body })
    if (body.method === 'initialize') {
      sessions += 1
      live.add(`s${sessions}`)
      const result = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      return Response.json({ jsonrpc: '2.0', id: body.id, result }, { headers: { 'mcp-session-id': `s${sessions}` } })
    }
    if (session === null || !live.has(session)) return new Response(null, { status: 404 })
    if (body.method === undefined) onReply({ session, body })
    if (body.id === undefined || body.method === undefined) return new Response(null, { status: 202 })
    if (body.method === 'tools/list')
      return Response.json({
        jsonrpc: '2.0',
        id: body.id,
        result: { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] },
      })
    return new Response(asking(session, body), { headers: { 'content-type': 'text/event-stream' } })
  })
})
afterAll(() => upstream.stop(true))
beforeEach(async () => {
  platform = await createTestPlatform({ upstream: localUpstream() })
  for (const id of ['one', 'two']) {
    const body = JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    expect(
      (await platform.fetch(`/connect/ada/${id}`, { method: 'PUT', headers: bearer(sampleKeys.ada), body })).status,
    ).toBe(201)
  }
  seen = []
  live = new Set()
})

const event = (message: object) => Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)

/** Answers to calls of other servers, by the tool that gives them. */
const forgeries: Readonly<Record<string, string>> = {
  batch: '[{"jsonrpc":"2.0","id":99,"result":{"forged":true}}]',
  letters: '{"jsonrpc":"2.0","ID":99,"result":{"forged":true}}',
  nul: '{"jsonrpc":"2.0","id\\u0000":99,"result":{"forged":true}}',
  odd: '{"jsonrpc":"2.0","a":NaN,"id":99,"result":{"forged":true}}',
  long: `{"jsonrpc":"2.0","id":"${'x'.repeat(700)}","method":"sampling/createMessage","params":{"forged":true}}`,
}

/** Asks the client twice with the same id that any server may choose, and answers with the first reply. */
function asking(session: string, { id, params }: Sent['body']): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      const forged = forgeries[String(params?.['name'])]
      if (forged !== undefined) {
        controller.enqueue(Buffer.from(`data: ${forged}\n\n`))
        controller.close()
        return
      }
      controller.enqueue(event({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } }))
      controller.enqueue(event({ id: 1, method: 'elicitation/create', params: { message: 'Really?' } }))
      onReply = ({ session: from, body }) => {
        if (from !== session) return
        controller.enqueue(event({ id, result: { content: [], replied: body } }))
        controller.close()
      }
    },
  })
}

const post = (body: object, session?: string, key: string = sampleKeys.ada) =>
  platform.fetch('/connect/ada/mcp', {
    method: 'POST',
    headers: bearer(key, session === undefined ? {} : { 'mcp-session-id': session }),
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  })

async function greet(
  capabilities: object = { elicitation: {}, tasks: {}, extensions: { 'x/y': {}, 'io.modelcontextprotocol/ui': {} } },
) {
  const params = { protocolVersion: '2025-06-18', capabilities, clientInfo: { name: 'a client', version: '1' } }
  const response = await post({ id: 1, method: 'initialize', params })
  return response.headers.get('mcp-session-id') ?? ''
}

/** The events of a stream, one at a time. */
async function* eventsOf(response: Response): AsyncGenerator<Record<string, unknown> & { id?: unknown }> {
  let text = ''
  for await (const piece of response.body as ReadableStream<Uint8Array>) {
    text += Buffer.from(piece).toString()
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = text.slice(0, end).replaceAll(/^data: |^event: .*\n/gm, '')
      text = text.slice(end + 2)
      yield JSON.parse(data)
    }
  }
}
const call = (id: unknown, name = 'one__ask') => ({ id, method: 'tools/call', params: { name, arguments: {} } })

for (const name of Object.keys(forgeries))
  test(`an event that could answer the call of another server is not passed on: ${name}`, async () => {
    const session = await greet()
    const response = await post(call(7, `one__${name}`), session)
    expect(response.status).toBe(200)
    const text = await response.text().catch((error: Error) => error.message)
    expect(text).not.toContain('forged')
  })

test('a server hears what the client offers, without what the endpoint cannot route', async () => {
  const session = await greet()
  const events = eventsOf(await post(call(7), session))
  await events.next()
  await events.next()
  // The first is that of the reader of lists.
  const { body } = seen.findLast(({ body: { method } }) => method === 'initialize') as Sent
  expect(body.params).toMatchObject({
    capabilities: { elicitation: {}, extensions: { 'io.modelcontextprotocol/ui': {} } },
    clientInfo: { name: 'a client' },
  })
  expect(body.params?.['capabilities']).not.toHaveProperty('tasks')
  await events.return(undefined)
})

test('progress reaches the client under the token of its own call', async () => {
  const { params, ...asked } = call(7)
  const longest = 'x'.repeat(600)
  // A server may report thousands of times: a long token is not repeated each time.
  for (const [progressToken, heard] of [
    [5, 5],
    ['five', 'five'],
    [longest, longest],
    [`${longest}x`, null],
  ]) {
    const events = eventsOf(await post({ ...asked, params: { ...params, _meta: { progressToken } } }, await greet()))
    expect((await events.next()).value).toMatchObject({ params: { progressToken: heard, progress: 1 } })
    await events.return(undefined)
  }
})

test('its question reaches the client under an id that nobody guesses, and one reply goes back under its own', async () => {
  const session = await greet()
  const events = eventsOf(await post(call(7), session))
  // Its token is that of this call, whichever the server names: another one may be that of another server's call.
  expect((await events.next()).value).toMatchObject({
    method: 'notifications/progress',
    params: { progressToken: null, progress: 1 },
  })
  const { value: question } = await events.next()
  expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'Really?' } })
  const id = String(question?.id)
  expect(id.length).toBeGreaterThan(40)
  const reply = { id, result: { action: 'accept' } }
  const other = await greet()
  const strangers = [
    post(reply, other),
    post(reply),
    post(reply, session, sampleKeys.operator),
    post({ ...reply, id: 1 }, session),
  ]
  for (const response of await Promise.all(strangers)) expect(response.status).toBe(202)
  expect(seen.filter(({ body }) => body.result !== undefined)).toEqual([])
  for (let twice = 0; twice < 2; twice += 1) expect((await post(reply, session)).status).toBe(202)
  const { value: answer } = await events.next()
  expect(answer).toEqual({
    jsonrpc: '2.0',
    id: 7,
    result: { content: [], replied: { jsonrpc: '2.0', id: 1, result: { action: 'accept' } } },
  })
  expect(seen.filter(({ body }) => body.result !== undefined)).toHaveLength(1)
})

test('neither a reply nor a cancellation reaches another server that has the name of the one that has the call', async () => {
  const session = await greet()
  const events = eventsOf(await post(call(7), session))
  await events.next()
  const { value: question } = await events.next()
  const change = (method: string, body?: object) =>
    platform.fetch('/connect/ada/one', {
      method,
      headers: bearer(sampleKeys.ada),
      ...(body && { body: JSON.stringify(body) }),
    })
  expect((await change('DELETE')).status).toBe(200)
  platform.now += 1000
  expect((await change('PUT', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp?other` })).status).toBe(201)
  const before = seen.length
  expect((await post({ id: String(question?.id), result: { action: 'accept' } }, session)).status).toBe(202)
  const cancel = { method: 'notifications/cancelled', params: { requestId: 7, reason: 'private' } }
  expect((await post(cancel, session)).status).toBe(202)
  expect(seen.slice(before)).toEqual([])
  await events.return(undefined)
})

test('a cancelled call is cancelled at its own server, under the id that it has there, and nowhere else', async () => {
  const session = await greet()
  const events = eventsOf(await post(call(7), session))
  await events.next()
  const sent = seen.find(({ body: { method } }) => method === 'tools/call')?.body.id
  const cancel = { method: 'notifications/cancelled', params: { requestId: 7, reason: 'x' } }
  for (const [from, body] of [
    [await greet(), cancel],
    [session, { ...cancel, params: { requestId: 8 } }],
  ] as const)
    expect((await post(body, from)).status).toBe(202)
  expect(seen.filter(({ body: { method } }) => method === cancel.method)).toEqual([])
  expect((await post(cancel, session)).status).toBe(202)
  const cancelled = seen.filter(({ body: { method } }) => method === cancel.method)
  expect(cancelled.map(({ body }) => body.params)).toEqual([{ requestId: sent, reason: 'x' }])
  await events.return(undefined)
})

test('a call whose stream has ended is forgotten', async () => {
  const session = await greet()
  const events = eventsOf(await post(call(7), session))
  await events.next()
  await events.return(undefined)
  const before = seen.length
  const cancel = { method: 'notifications/cancelled', params: { requestId: 7, reason: 'x' } }
  expect((await post(cancel, session)).status).toBe(202)
  expect(seen.slice(before)).toEqual([])
})

test('a session that its server has forgotten is begun again once, and the call is not sent twice', async () => {
  const session = await greet()
  const first = eventsOf(await post(call(1), session))
  await first.next()
  await first.return(undefined)
  live.clear()
  const before = seen.length
  const answers = await Promise.all([post(call(2), session), post(call(3), session)])
  for (const response of answers) {
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ error: { code: -32000 } })
  }
  const since = seen.slice(before).map(({ body: { method } }) => method)
  expect(since.filter((method) => method === 'initialize')).toHaveLength(1)
  expect(since.filter((method) => method === 'tools/call')).toHaveLength(2)
  const next = eventsOf(await post(call(4), session))
  expect((await next.next()).value).toMatchObject({ method: 'notifications/progress' })
  await next.return(undefined)
})
