/** Clients hear that their own list has changed, once, and nothing of others' lists. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { listenersOfKeyMax } from '../../../src/features/endpoint/list-changes.ts'
import { rpcIdCharsMax } from '../../../src/limits.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'
import { bearer, localServer, localUpstream, messageIn } from '../../support/upstream.ts'

let tools = ['a']
const mcp = createMcpHandler(() => {
  const server = new Server({ name: 's', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', async () => ({
    tools: tools.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }))
  server.setRequestHandler('tools/call', async (_, { mcpReq }) => {
    await mcpReq.notify({ method: 'notifications/tools/list_changed' })
    return { content: [] }
  })
  return server
})
let upstream: Bun.Server<undefined>
let platform: TestPlatform
let acts: (() => void)[] = []
/** A second passes, and what it brings about is done. */
async function tick(): Promise<void> {
  for (const act of acts) act()
  for (let turn = 0; turn < 60; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

beforeAll(() => {
  upstream = localServer((request) =>
    request.method === 'POST' ? mcp.fetch(request) : new Response(null, { status: 405 }),
  )
})
afterAll(() => upstream.stop(true))
beforeEach(async () => {
  acts = []
  tools = ['a']
  platform = await createTestPlatform({
    upstream: localUpstream(),
    every(_, act) {
      acts.push(act)
      return () => {
        acts = acts.filter((one) => one !== act)
      }
    },
  })
  await put('one')
})
const put = (id: string, key: string = sampleKeys.ada) =>
  platform.fetch(`/connect/ada/${id}`, {
    ...{
      method: 'PUT',
      headers: bearer(key),
      body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` }),
    },
  })
const ask = (method: string, params: object, { key = sampleKeys.ada as string, headers = {} } = {}) =>
  platform.fetch('/connect/ada/mcp', {
    method: 'POST',
    headers: bearer(key, headers),
    body: JSON.stringify({ jsonrpc: '2.0', id: 5, method, params }),
  })
async function sessionOf(key?: string): Promise<string> {
  const response = await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {} }, key ? { key } : {})
  return response.headers.get('mcp-session-id') ?? ''
}
const open = (session: string | undefined, key: string = sampleKeys.ada) =>
  platform.fetch('/connect/ada/mcp', {
    headers: bearer(key, session === undefined ? {} : { 'mcp-session-id': session }),
  })
/** Messages that a stream has carried, and whether it is over. */
function read(response: Response) {
  const heard = { methods: [] as string[], messages: [] as Record<string, unknown>[], isOver: false, comments: 0 }
  const reading = async () => {
    for await (const piece of response.body as ReadableStream<Uint8Array>) {
      const text = Buffer.from(piece).toString()
      if (text === ':\n\n') heard.comments += 1
      const message = /^data: (.*)$/m.exec(text)?.[1]
      if (message === undefined) continue
      heard.messages.push(JSON.parse(message))
      heard.methods.push(JSON.parse(message).method)
    }
    heard.isOver = true
  }
  void reading()
  return heard
}

/** As `until`, with a second after each look: that of one second may still be at work when the next comes. */
const untilTicked = (isSo: () => boolean) =>
  until(async () => {
    await tick()
    return isSo()
  })

test('a client hears of its own list, once for all changes of a second', async () => {
  await ask('tools/list', {})
  const narrow = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { connectionId: 'one' } }] })
  const [all, own] = [read(await open(await sessionOf())), read(await open(await sessionOf(narrow), narrow))]
  await tick()
  expect(all.methods).toEqual([])
  await put('two')
  await put('three')
  await messageIn(await ask('tools/list', {}))
  await untilTicked(() => all.methods.length === 1)
  expect(all.methods).toEqual(['notifications/tools/list_changed'])
  expect(own.methods).toEqual([])
  await platform.fetch('/connect/ada/two', { method: 'DELETE', headers: bearer(sampleKeys.ada) })
  await untilTicked(() => all.methods.length === 2)
  expect(own.methods).toEqual([])
})

test('a client hears of a new connection, though nobody asks for a list', async () => {
  await messageIn(await ask('tools/list', {}))
  const all = read(await open(await sessionOf()))
  await put('two')
  // Its server is asked behind the first look.
  await until(async () => {
    await tick()
    return all.methods.length > 0
  })
  expect(all.methods).toEqual(['notifications/tools/list_changed'])
})

test('a client hears of what its server says has changed', async () => {
  await messageIn(await ask('tools/list', {}))
  const all = read(await open(await sessionOf()))
  tools = ['a', 'b']
  const call = async () => (await ask('tools/call', { name: 'one__a', arguments: {} })).text()
  await call()
  await tick()
  await tick()
  // Its list was read within the last second.
  expect(all.methods).toEqual([])
  platform.now += 1000
  await call()
  await until(async () => {
    await tick()
    return all.methods.length > 0
  })
  expect(all.methods).toEqual(['notifications/tools/list_changed'])
})

test('a client of a view hears of each change of the view that changes its list', async () => {
  const view = (settings: object) =>
    platform.fetch('/namespaces/ada/views/v', {
      ...{ method: 'PUT', headers: bearer(sampleKeys.ada) },
      body: JSON.stringify({ policy: [{ resources: 'connections' }], ...settings }),
    })
  expect((await view({})).status).toBe(201)
  const at = (init: RequestInit) => platform.fetch('/connect/ada/mcp/v', init)
  const rpc = (method: string, params: object) =>
    at({
      ...{ method: 'POST', headers: bearer(sampleKeys.ada) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  await messageIn(await rpc('tools/list', {}))
  const greeted = await rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {} })
  const session = greeted.headers.get('mcp-session-id') ?? ''
  const heard = read(await at({ headers: bearer(sampleKeys.ada, { 'mcp-session-id': session }) }))
  let told = 0
  for (const settings of [{ search: true }, { search: true, always: ['one__a'] }, {}, { status: true }]) {
    await view(settings)
    told += 1
    await until(async () => {
      await tick()
      return heard.methods.length >= told
    })
    expect(heard.methods).toHaveLength(told)
  }
})

test('nobody reads a stream of `HEAD`', async () => {
  const headers = bearer(sampleKeys.ada, { 'mcp-session-id': await sessionOf() })
  for (const [path, allow] of [
    ['/connect/ada/mcp', 'GET, POST'],
    ['/connect/ada/mcp/v', 'GET, POST'],
    ['/events', 'GET'],
  ] as const) {
    const response = await platform.fetch(path, { method: 'HEAD', headers })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  }
})

test('a client hears nothing of a list that its policy refuses', async () => {
  await ask('tools/list', {})
  const policy = [{ rpcReqMatch: { method: '^(initialize|tools/call)$' } }]
  const narrow = await mintToken(platform.fetch, sampleKeys.ada, { policy })
  const [all, own] = [read(await open(await sessionOf())), read(await open(await sessionOf(narrow), narrow))]
  await tick()
  await put('two')
  await messageIn(await ask('tools/list', {}))
  await untilTicked(() => all.methods.length === 1)
  await tick()
  expect(own.methods).toEqual([])
})

test('a server that lists something else is told of when it is read again, but not of another order', async () => {
  tools = ['a', 'b']
  await messageIn(await ask('tools/list', {}))
  const all = read(await open(await sessionOf()))
  for (const [next, heard] of [
    [['b', 'a'], 0],
    [['b', 'c'], 1],
  ] as const) {
    tools = [...next]
    platform.now += 11_000
    await messageIn(await ask('tools/list', {}))
    // Behind the answer.
    await until(async () => {
      const { result } = (await messageIn(await ask('tools/list', {}))) as { result: { tools: { name: string }[] } }
      return (
        result.tools
          .filter(({ name }) => name.startsWith('one__'))
          .map(({ name }) => name)
          .join() === next.map((name) => `one__${name}`).join()
      )
    })
    await tick()
    await tick()
    expect(all.methods).toHaveLength(heard)
  }
})

test('a subscription of revision 2026-07-28 says what it honours, and names itself in each message', async () => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const notifications = { toolsListChanged: true, resourceSubscriptions: ['x'] }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }
  const heard = read(await ask('subscriptions/listen', { notifications, _meta }, { headers }))
  await until(() => heard.messages.length === 1)
  const named = { 'io.modelcontextprotocol/subscriptionId': '5' }
  expect(heard.messages).toEqual([
    {
      ...{ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' },
      params: { notifications: { toolsListChanged: true }, _meta: named },
    },
  ])
  await ask('tools/list', {})
  await untilTicked(() => heard.messages.length === 2)
  expect(heard.messages[1]).toEqual({
    jsonrpc: '2.0',
    method: 'notifications/tools/list_changed',
    params: { _meta: named },
  })
})

test('a stream needs a session of its own caller, has bounds, and ends with its credential', async () => {
  expect((await open(undefined)).status).toBe(400)
  const session = await sessionOf()
  expect((await open(session, sampleKeys.operator)).status).toBe(404)
  expect((await open('postern.xyz')).status).toBe(404)
  const made = await platform.fetch('/me/api-keys', {
    method: 'POST',
    headers: bearer(sampleKeys.ada),
    body: '{"name":"x"}',
  })
  const { key, id } = (await made.json()) as { key: string; id: string }
  const streams: ReturnType<typeof read>[] = []
  for (let i = 0; i < listenersOfKeyMax; i += 1) streams.push(read(await open(await sessionOf(key), key)))
  const refused = await open(await sessionOf(key), key)
  expect({ status: refused.status, retry: refused.headers.has('retry-after') }).toEqual({ status: 429, retry: true })
  expect(await messageIn(refused)).toMatchObject({ error: { code: -32029 } })
  await untilTicked(() => streams.every(({ comments }) => comments >= 2))
  await platform.fetch(`/me/api-keys/${id}`, { method: 'DELETE', headers: bearer(sampleKeys.ada) })
  await untilTicked(() => streams.every(({ isOver }) => isOver))
  // It carries list changes, and nothing else.
  expect(streams.flatMap(({ messages }) => messages).filter((one) => 'error' in one)).toEqual([])
  expect(acts).toEqual([])
})

test('a stream that its client does not read ends', async () => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }
  const params = { notifications: { toolsListChanged: true }, _meta }
  await ask('tools/list', {})
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'x'.repeat(rpcIdCharsMax), method: 'subscriptions/listen', params })
  const unread = await platform.fetch('/connect/ada/mcp', {
    method: 'POST',
    headers: bearer(sampleKeys.ada, headers),
    body,
  })
  expect(unread.status).toBe(200)
  for (let i = 0; i < 130; i += 1) {
    if (i % 2 === 0) await put('two')
    else await platform.fetch('/connect/ada/two', { method: 'DELETE', headers: bearer(sampleKeys.ada) })
    await messageIn(await ask('tools/list', {}))
    await tick()
  }
  // It comes to its end.
  expect((await unread.text()).match(/list_changed/g)?.length).toBeWithin(70, 120)
})
