/** Views of a namespace, and the search in place of a long list. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { mintToken } from '../../api/cases.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, localServer, localUpstream, messageIn } from '../../support/upstream.ts'

let calls: unknown[] = []
const tools = [
  { name: 'search', description: 'Finds issues by their words.\nMore of it.', annotations: { readOnlyHint: true } },
  { name: 'create', description: 'Creates an issue.', annotations: { destructiveHint: false } },
  { name: 'delete', description: 'Deletes an issue for ever.' },
  { name: 'page', description: 'Issues for the page of an app.', _meta: { ui: { visibility: ['app'] } } },
].map((tool) => ({
  ...tool,
  inputSchema: {
    type: 'object' as const,
    properties: { q: { type: 'string' as const }, limit: { type: 'integer' as const } },
    required: ['q'],
  },
}))
const mcp = createMcpHandler(() => {
  const server = new Server({ name: 'issues', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', async () => ({ tools }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    calls.push([params.name, params.arguments])
    return { content: [{ type: 'text', text: params.name }] }
  })
  return server
})
let upstream: Bun.Server<undefined>
let platform: TestPlatform
/** The lines of the record of calls. */
let recorded: object[]

beforeAll(() => {
  upstream = localServer((request) =>
    request.method === 'POST' ? mcp.fetch(request) : new Response(null, { status: 405 }),
  )
})
afterAll(() => upstream.stop(true))
beforeEach(async () => {
  recorded = []
  const callLog = {
    begin() {},
    end() {},
    refused: async (_: unknown, make: () => Promise<object>) => void recorded.push(await make()),
    record: async (line: object) => void recorded.push(line),
  } as never
  platform = await createTestPlatform({ upstream: localUpstream(), callLog })
  for (const id of ['one', 'two'])
    await json('PUT', `/connect/ada/${id}`, { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
  calls = []
})

async function json(method: string, path: string, body?: object, key: string = sampleKeys.ada) {
  const init = { method, headers: bearer(key), ...(body && { body: JSON.stringify(body) }) }
  const response = await platform.fetch(path, init)
  return { status: response.status, body: await messageIn(response) }
}
async function ask(path: string, method: string, params: object = {}, key: string = sampleKeys.ada) {
  const { status, body } = await json('POST', path, { jsonrpc: '2.0', id: 1, method, params }, key)
  return { status, ...body }
}
const named = ({ result }: { result: { tools: { name: string }[] } }) => result.tools.map(({ name }) => name)
const onlyOne = { metadata: { connectionId: 'one' } }

describe('a view', () => {
  test('is written, read, listed and deleted by those who manage the namespace', async () => {
    const write = { policy: [onlyOne], title: 'One' }
    expect((await json('PUT', '/namespaces/ada/views/reading', write)).status).toBe(201)
    const { status, body } = await json('PUT', '/namespaces/ada/views/reading', { policy: [] })
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        ...{ namespace: 'ada', name: 'reading', policy: [], search: false, always: [], names: 46, bareNames: false },
        ...{ status: false, title: null, description: null, instructions: null },
        ...{ url: 'http://localhost:8787/connect/ada/mcp/reading' },
        ...{ createdAt: body.createdAt, updatedAt: body.updatedAt },
      },
    })
    expect((await json('GET', '/namespaces/ada/views/reading')).body).toEqual(body)
    expect((await json('GET', '/namespaces/ada/views')).body).toEqual({ views: [body] })
    const missing = { status: 404, body: { error: 'View not found' } }
    for (const name of ['other', 'Reading', 'a_b', 'x'.repeat(40)])
      expect(await json('GET', `/namespaces/ada/views/${name}`)).toEqual(missing)
    expect(await json('PUT', '/namespaces/ada/views/a_b', { policy: [] })).toEqual({
      status: 400,
      body: { error: expect.stringContaining('the name of a view must be 1 to 39 characters (a-z, 0-9 and "-")') },
    })
    const linus = await json('GET', '/namespaces/ada/views', undefined, sampleKeys.linus)
    expect(linus).toEqual({ status: 404, body: { error: 'Namespace not found' } })
    const linusWrites = await json('PUT', '/namespaces/northwind/views/x', { policy: [] }, sampleKeys.linus)
    expect(linusWrites.status).toBe(403)
    const deleted = await json('DELETE', '/namespaces/ada/views/reading')
    expect(deleted).toEqual({ status: 200, body: { success: true, namespace: 'ada', name: 'reading' } })
    expect(await json('DELETE', '/namespaces/ada/views/reading')).toEqual(missing)
    expect((await ask('/connect/ada/mcp/reading', 'ping')).status).toBe(404)
  })

  test('takes its owner’s time where many are listed, here and in a registry', async () => {
    let now = 0
    const time = new Paces(clockOf(() => now))
    platform = await createTestPlatform({ fairness: { ...createFairness(), time } })
    const [title, description, instructions] = [100, 500, 1000].map((length) => '\u0001'.repeat(length))
    const always = Array.from({ length: 5 }, () => '\u0001'.repeat(200))
    const write = { policy: [], title, description, instructions, always }
    await json('PUT', '/namespaces/of-ada', {})
    await json('PATCH', '/namespaces/of-ada', { registry: 'members' })
    for (let i = 0; i < 60; i += 1) {
      now += 100
      expect((await json('PUT', `/namespaces/of-ada/views/v${i}`, write)).status).toBe(201)
    }
    for (const path of ['/namespaces/of-ada/views', '/registry/of-ada/v0.1/servers']) {
      now += 10_000
      expect((await json('GET', path)).status).toBe(200)
      expect(time.wait('ada')).toBeGreaterThan(0)
    }
  })

  test('that is unknown is 404, also for a token that may call nothing', async () => {
    await json('PUT', '/namespaces/ada/views/known', { policy: [] })
    const reader = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations: 'read' }] })
    const statuses = async (key: string) =>
      Promise.all(
        ['known', 'unknown'].map(async (view) => (await ask(`/connect/ada/mcp/${view}`, 'tools/list', {}, key)).status),
      )
    expect(await statuses(sampleKeys.ada)).toEqual([200, 404])
    expect(await statuses(reader)).toEqual([403, 404])
  })

  test('has a closed body, whose policy is one of a token without a lifetime', async () => {
    const wrong: object[] = [
      {},
      { policy: [{}] },
      { policy: [{ ttl: '1h', operations: 'read' }] },
      { policy: [{ rpcReqMatch: { method: '(' } }] },
      { policy: Array.from({ length: 17 }, () => onlyOne) },
      { policy: [], names: 50 },
      { policy: [], always: ['a', 'b', 'c', 'd', 'e', 'f'] },
      { policy: [], title: 'x'.repeat(101) },
      { policy: [], other: 1 },
    ]
    for (const body of wrong) expect((await json('PUT', '/namespaces/ada/views/x', body)).status).toBe(400)
  })

  test('narrows everybody, as a token with its policy would, and is named by a refusal', async () => {
    await json('PUT', '/namespaces/ada/views/v', {
      policy: [onlyOne, { rpcReqMatch: { 'params.name': '^s' } }],
      names: 64,
    })
    expect(named(await ask('/connect/ada/mcp/v', 'tools/list'))).toEqual(['one__search'])
    const unknown = await ask('/connect/ada/mcp/v', 'tools/call', { name: 'two__search', arguments: { q: 'x' } })
    expect(unknown).toMatchObject({ status: 200, error: { code: -32602, message: 'Unknown tool: two__search' } })
    const refused = await ask('/connect/ada/mcp/v', 'tools/call', { name: 'one__delete', arguments: { q: 'x' } })
    expect(refused).toMatchObject({ status: 403, error: { code: -32003 } })
    expect(refused.error.message).toBe('The view does not allow this: view.policy[1].rpcReqMatch.params.name')
    expect(calls).toEqual([])
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ rpcReqMatch: { method: 'list' } }] })
    const byToken = await ask('/connect/ada/mcp/v', 'tools/call', { name: 'one__search', arguments: { q: 'x' } }, token)
    expect(byToken.error.message).toContain(' policy[0].rpcReqMatch.method')
    await json('PUT', '/namespaces/ada/views/v', { policy: [{ operations: 'read' }] })
    expect((await ask('/connect/ada/mcp/v', 'ping')).error.message).toContain('view.policy[0].operations')
  })

  test('lets pages of apps call tools by their own name, if one connection has it', async () => {
    await json('PUT', '/namespaces/ada/views/v', { policy: [], bareNames: true })
    const both = await ask('/connect/ada/mcp/v', 'tools/call', { name: 'search', arguments: { q: 'x' } })
    expect(both.error.message).toBe('Ambiguous tool: search. Use one of: one__search, two__search')
    await json('PUT', '/namespaces/ada/views/v', { policy: [onlyOne], bareNames: true })
    await ask('/connect/ada/mcp/v', 'tools/call', { name: 'search', arguments: { q: 'x' } })
    expect(calls).toEqual([['search', { q: 'x' }]])
    expect((await ask('/connect/ada/mcp', 'tools/call', { name: 'search' })).error.code).toBe(-32602)
  })

  test('has its title, its own text first, and the tool of states', async () => {
    await json('PUT', '/namespaces/ada/views/v', {
      policy: [onlyOne],
      title: 'Reading',
      instructions: 'Read.',
      status: true,
    })
    const { result } = await ask('/connect/ada/mcp/v', 'initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
    })
    expect(result).toMatchObject({ serverInfo: { title: 'Reading' }, instructions: 'Read.' })
    expect(named(await ask('/connect/ada/mcp/v', 'tools/list')).at(-1)).toBe('connections_status')
    const status = await ask('/connect/ada/mcp/v', 'tools/call', { name: 'connections_status' })
    expect(status.result.structuredContent.connections).toEqual([
      { connectionId: 'one', state: 'listed', tools: 4, listedAt: expect.any(String) },
    ])
  })
})

describe('a search in place of the list', () => {
  const call = (name: string, args: object) => ask('/connect/ada/mcp/s', 'tools/call', { name, arguments: args })
  beforeEach(async () => {
    await json('PUT', '/namespaces/ada/views/s', {
      policy: [onlyOne],
      search: true,
      always: ['one__create', 'nobody__x'],
    })
  })

  test('is four tools, and those that the view always shows', async () => {
    const answer = await ask('/connect/ada/mcp/s', 'tools/list')
    expect(named(answer)).toEqual(['search_tools', 'call_read', 'call_write', 'call_destructive', 'one__create'])
    expect(answer.result.tools[0].description).toBe('Searches 4 tools: one (4).')
    // One that has none to show is named too.
    await json('PUT', '/connect/ada/dead', { mcpUrl: 'http://127.0.0.1:1/mcp' })
    const whole = await ask('/connect/ada/mcp?tools=search', 'tools/list')
    expect(whole.result.tools[0].description).toBe(
      'Searches 12 tools: calendar-home (0), dead (0), one (4), two (4), weather-cabin (4).',
    )
  })

  test('finds tools by any word, with a signature and the tool that calls them', async () => {
    const { result } = await call('search_tools', { query: 'find an issue', limit: 2 })
    expect(result.structuredContent.tools).toHaveLength(2)
    const found = await call('search_tools', { query: 'words' })
    expect(found.result.structuredContent).toEqual({
      tools: [
        {
          name: 'one__search',
          call: 'call_read',
          signature: 'one__search(q: string, limit?: integer) Finds issues by their words.',
        },
      ],
    })
    const full = await call('search_tools', { query: 'delete', detail: 'full' })
    expect(full.result.structuredContent.tools[0]).toMatchObject({
      name: 'one__delete',
      inputSchema: { required: ['q'] },
    })
    const apps = await call('search_tools', { query: 'page app', limit: 20 })
    expect(JSON.stringify(apps.result)).not.toContain('one__page')
    for (const wrong of [{}, { query: 1 }, { query: 'x', limit: 21 }, { query: 'x', detail: 'all' }])
      expect((await call('search_tools', wrong)).result.isError).toBe(true)
  })

  test('calls by the tool of its class alone, with arguments that fit', async () => {
    const wrong = await call('call_read', { name: 'one__delete', arguments: { q: 'x' } })
    expect(wrong.result).toMatchObject({
      isError: true,
      content: [{ text: 'one__delete is destructive: use call_destructive' }],
      structuredContent: { error: 'wrong_class', use: 'call_destructive' },
    })
    const unfit = await call('call_read', { name: 'one__search', arguments: { q: 1 } })
    expect(unfit.result.structuredContent).toMatchObject({
      error: 'invalid_arguments',
      message: 'arguments.q must be string',
    })
    for (const name of ['two__search', 'search_tools', 'call_read', 'nobody__x', 'search'])
      expect((await call('call_read', { name })).error).toEqual({ code: -32602, message: `Unknown tool: ${name}` })
    expect(calls).toEqual([])
    const { result } = await call('call_write', { name: 'one__create', arguments: { q: 'x', limit: 3 } })
    expect(result.content[0].text).toBe('create')
    expect(calls).toEqual([['create', { q: 'x', limit: 3 }]])
  })

  test('is asked about the call that the arguments describe, before anything else', async () => {
    const policy = [{ rpcReqMatch: { 'params.arguments.q': '^safe$' } }]
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
    const asked = (q: string) =>
      ask(
        '/connect/ada/mcp/s',
        'tools/call',
        { name: 'call_read', arguments: { name: 'one__search', arguments: { q } } },
        token,
      )
    const refused = await asked('other')
    expect(refused).toMatchObject({ status: 403, error: { code: -32003 } })
    // As any other call that a rule refuses.
    const line = { tool: 'search', connectionId: 'one', outcome: 'refused', via: 'search' }
    expect(recorded).toMatchObject([{ ...line, constraint: 'policy[0].rpcReqMatch.params.arguments.q' }])
    expect((await asked('safe')).result.content[0].text).toBe('search')
    expect(calls).toEqual([['search', { q: 'safe' }]])
  })

  test('calls again with what a server asked for, as by the tool’s own name', async () => {
    const sent: unknown[] = []
    const modern = localServer(async (request) => {
      const { id, method, params } = (await request.json()) as { id: unknown; method: string; params: object }
      const answer = (result: object) => Response.json({ jsonrpc: '2.0', id, result })
      if (method === 'initialize' || request.headers.get('mcp-method') === null)
        return Response.json({ jsonrpc: '2.0', id, error: { code: -32022, message: 'too old' } }, { status: 400 })
      if (method === 'server/discover') return answer({ capabilities: { tools: {} } })
      if (method === 'tools/list') return answer({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] })
      sent.push(params)
      return answer({ content: [] })
    })
    await json('PUT', '/connect/ada/new', { mcpUrl: `http://127.0.0.1:${modern.port}/mcp` })
    const retry = { inputResponses: { a: { action: 'accept', content: { b: 1 } } }, requestState: 'S' }
    for (const [name, args] of [
      ['new__ask', {}],
      ['call_destructive', { name: 'new__ask', arguments: {} }],
    ] as const)
      await ask('/connect/ada/mcp?tools=search', 'tools/call', { name, arguments: args, ...retry })
    expect(sent).toMatchObject([retry, retry])
    modern.stop(true)
  })

  test('is there by a parameter too, and its tools are unknown without it', async () => {
    expect(named(await ask('/connect/ada/mcp?tools=search', 'tools/list'))[0]).toBe('search_tools')
    for (const name of ['search_tools', 'call_read'])
      expect((await ask('/connect/ada/mcp', 'tools/call', { name })).error.code).toBe(-32602)
  })
})
