/** One endpoint for a namespace: official clients of both eras, before real servers of both eras and a mock. */

import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { listedName } from '../../../src/features/endpoint/listed-names.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'
import { bearer, connectTo, localServer, localUpstream, messageIn } from '../../support/upstream.ts'

/** Tool calls that reached a server: its path, and the tool's own name. */
let calls: string[] = []
/** Every message that reached a server. */
let seen: { readonly path: string; readonly headers: Headers; readonly body: Record<string, unknown> }[] = []

function serverOf(path: string, names: readonly string[]) {
  const capabilities = { tools: {}, prompts: {}, resources: {} }
  const server = new Server({ name: path, version: '1' }, { capabilities, instructions: `Use ${path} with care.` })
  server.setRequestHandler('tools/list', async () => ({
    tools: names.map((name) => ({
      name,
      inputSchema: { type: 'object' as const },
      _meta: { ui: { resourceUri: 'ui://board/main' }, other: 'ui://board/other' },
    })),
  }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    calls.push(`${path} ${params.name}`)
    return {
      content: [
        { type: 'text', text: `${path} ${params.name}` },
        { type: 'resource_link', uri: 'file:///a.txt', name: 'a' },
        { type: 'resource', resource: { uri: 'file:///b.txt', text: 'b' } },
      ],
      structuredContent: { uri: 'file:///a.txt' },
    }
  })
  server.setRequestHandler('prompts/list', async () => ({ prompts: [{ name: 'greet' }] }))
  server.setRequestHandler('prompts/get', async ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `${path} ${params.name}` } }],
  }))
  server.setRequestHandler('resources/list', async () => ({ resources: [{ uri: 'file:///a.txt', name: 'a' }] }))
  server.setRequestHandler('resources/templates/list', async () => ({
    resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 'files' }],
  }))
  server.setRequestHandler('resources/read', async ({ params }) => ({
    contents: [{ uri: params.uri, text: `${path} ${params.uri}` }],
  }))
  return server
}

const names = ['search', 'get', 'with.dot', 'a long name that no client takes as it is written here']
const both = createMcpHandler(() => serverOf('both', names))
const newest = createMcpHandler(() => serverOf('newest', names), { legacy: 'reject' })
/** By path: how a server behaves. */
const manners: Record<string, (request: Request) => Promise<Response> | Response> = {
  '/both': (request) => both.fetch(request),
  '/newest': (request) => newest.fetch(request),
  '/broken': () => new Response('no', { status: 500 }),
}
let upstream: Bun.Server<undefined>
let front: Bun.Server<undefined>
let platform: TestPlatform

beforeAll(() => {
  upstream = localServer(async (request) => {
    const path = new URL(request.url).pathname
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const text = await request.text()
    seen.push({ path, headers: request.headers, body: JSON.parse(text) })
    const again = new Request(request.url, { method: 'POST', headers: request.headers, body: text })
    return manners[path]?.(again) ?? new Response(null, { status: 404 })
  })
})
afterAll(async () => {
  await upstream.stop(true)
  await front?.stop(true)
})
beforeEach(async () => {
  calls = []
  seen = []
  await front?.stop(true)
  platform = await createTestPlatform({ upstream: localUpstream() })
  front = localServer(async (request) => {
    const { method, headers } = request
    const body = method === 'POST' ? { body: await request.text() } : {}
    const { pathname, search } = new URL(request.url)
    return platform.fetch(pathname + search, { method, headers, ...body })
  })
})

async function connect(id: string, path: string, more: object = {}): Promise<void> {
  await connectTo(platform, id, `http://127.0.0.1:${upstream.port}${path}`, more)
  calls = []
  seen = []
}

async function send(
  body: object | string,
  { credential = sampleKeys.ada as string, headers = {} as Record<string, string>, query = '' } = {},
) {
  const response = await platform.fetch(`/connect/ada/mcp${query}`, {
    method: 'POST',
    headers: bearer(credential, headers),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await messageIn(response) }
}
const message = (method: string, params: object = {}, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })
const listed = async (options?: Parameters<typeof send>[1]) => {
  const { body } = await send(message('tools/list'), options)
  return (body.result.tools as { name: string }[]).map(({ name }) => name)
}

async function clientOf(token: string, versions?: string[]): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, versions ? { supportedProtocolVersions: versions } : {})
  const url = new URL(`http://127.0.0.1:${front.port}/connect/ada/mcp`)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
  return client
}

describe('an official client', () => {
  for (const versions of [undefined, ['2025-06-18']]) {
    test(`uses tools, prompts and resources of all servers (${versions ?? 'its own choice of revision'})`, async () => {
      await connect('old', '/both')
      await connect('new', '/newest')
      const token = await mintToken(platform.fetch, sampleKeys.ada, {
        policy: [{ metadata: [{ connectionId: 'old' }, { connectionId: 'new' }] }],
      })
      const client = await clientOf(token, versions)
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name.replace(/_[0-9a-f]{8}$/, '_HASH'))).toEqual([
        'new__search',
        'new__get',
        'new__with_dot_HASH',
        'new__a_long_name_that_no_client_takes_HASH',
        'old__search',
        'old__get',
        'old__with_dot_HASH',
        'old__a_long_name_that_no_client_takes_HASH',
      ])
      for (const { name } of tools) {
        const { content } = await client.callTool({ name, arguments: {} })
        expect(content).toMatchObject([
          { type: 'text' },
          { type: 'resource_link', uri: `postern://${name.slice(0, 3)}/file:///a.txt` },
          { type: 'resource', resource: { uri: `postern://${name.slice(0, 3)}/file:///b.txt` } },
        ])
      }
      expect(calls).toEqual(['newest', 'both'].flatMap((path) => names.map((name) => `${path} ${name}`)))
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['new__greet', 'old__greet'])
      expect(await client.getPrompt({ name: 'old__greet' })).toMatchObject({
        messages: [{ content: { text: 'both greet' } }],
      })
      const { resources } = await client.listResources()
      expect(resources.map(({ uri }) => uri)).toEqual(['postern://new/file:///a.txt', 'postern://old/file:///a.txt'])
      for (const { uri } of resources) expect(await client.readResource({ uri })).toMatchObject({ contents: [{ uri }] })
      const { resourceTemplates } = await client.listResourceTemplates()
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
        'postern://new/file:///{name}',
        'postern://old/file:///{name}',
      ])
      await client.close()
    })
  }
})

describe('lists', () => {
  test('are narrowed by the policy, asked about the connection’s own names', async () => {
    await connect('one', '/both')
    const only = (rule: object) =>
      mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { connectionId: 'one' }, ...rule }] })
    expect(await listed({ credential: await only({ rpcReqMatch: { 'params.name': '^search$' } }) })).toEqual([
      'one__search',
    ])
    expect(await listed({ credential: await only({ rpcReqMatch: { 'params.name': '^one__' } }) })).toEqual([])
  })

  test('tell which connections are missing, and call nobody again at once', async () => {
    await connect('one', '/both')
    manners['/gone'] = manners['/both'] as (typeof manners)['x']
    await connect('two', '/gone')
    manners['/gone'] = () => new Response('no', { status: 500 })
    const credential = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ metadata: [{ connectionId: 'one' }, { connectionId: 'two' }] }],
    })
    const asked: number[] = []
    for (let round = 0; round < 2; round += 1) {
      const { body } = await send(message('tools/list'), { credential })
      expect(body.result.tools).toHaveLength(names.length)
      expect(body.result._meta).toEqual({
        'postern/skipped': [{ connectionId: 'two', error: 'upstream_error', message: 'The MCP server answered 500' }],
      })
      asked.push(seen.filter(({ path }) => path === '/gone').length)
    }
    expect(asked[1]).toBe(asked[0])
  })

  test('rewrite the URIs of apps and nothing else of a definition', async () => {
    await connect('one', '/both')
    const credential = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ metadata: { connectionId: 'one' } }],
    })
    const { body } = await send(message('tools/list'), { credential })
    expect(body.result.tools[0]).toEqual({
      name: 'one__search',
      inputSchema: { type: 'object' },
      _meta: { ui: { resourceUri: 'ui://one/board/main' }, other: 'ui://board/other' },
    })
  })
})

describe('calls', () => {
  test('of unknown tools have one answer', async () => {
    await connect('one', '/both')
    const credential = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ metadata: { connectionId: 'one' } }],
    })
    for (const name of ['nobody__search', 'search', 'one_search', 'x_0123abcd', 'mcp__a', 'inventory-us-west.list']) {
      const { status, body } = await send(message('tools/call', { name }), { credential })
      expect({ status, body }).toEqual({
        status: 200,
        body: { jsonrpc: '2.0', id: 1, error: { code: -32602, message: `Unknown tool: ${name}` } },
      })
    }
    expect(calls).toEqual([])
  })

  test('replace only the id and the name, in the bytes', async () => {
    await connect('one', '/both')
    const text =
      '{ "jsonrpc":"2.0", "id":7,"method":"tools/call","params":{"arguments":{"name":"one__x","n":12345678901234567890}, "name":"one__search"} }'
    const { body } = await send(text)
    expect(body.id).toBe(7)
    const sent = seen.at(-1)?.body as { id: unknown; params: { name: string; arguments: { name: string } } }
    expect([typeof sent.id, sent.params.name, sent.params.arguments.name]).toEqual(['string', 'search', 'one__x'])
  })

  test('bring a server of the newest era no header that says another thing of the body', async () => {
    await connect('one', '/newest')
    // Its era is known from its lists.
    await listed()
    const headers = { 'mcp-param-region': 'us', 'mcp-name': 'drop', 'mcp-method': 'tools/list' }
    const { body } = await send(message('tools/call', { name: 'one__search', arguments: { region: 'eu' } }), {
      headers,
    })
    expect([calls, body.result.content[0].text]).toEqual([['newest search'], 'newest search'])
    const sent = seen.at(-1)?.headers
    const shown = ['mcp-param-region', 'mcp-name', 'mcp-method'].map((header) => sent?.get(header) ?? null)
    expect(shown).toEqual([null, 'search', 'tools/call'])
  })

  test('reach a server of the newest era of which no list was read', async () => {
    await connect('one', '/newest')
    const { body } = await send(message('tools/call', { name: 'one__search', arguments: {} }))
    expect([calls, body.result?.content[0].text]).toEqual([['newest search'], 'newest search'])
  })

  test('reach a server that has given up sessions, once its list was read again', async () => {
    await connect('one', '/moving')
    manners['/moving'] = (request) => both.fetch(request)
    await listed()
    await send(message('tools/call', { name: 'one__search', arguments: {} }))
    manners['/moving'] = (request) => newest.fetch(request)
    platform.now += 11_000
    await until(async () => {
      await listed()
      const { body } = await send(message('tools/call', { name: 'one__search', arguments: {} }))
      return body.result?.content[0].text === 'newest search'
    })
  })

  test('reach a server that has come to want sessions, once its list was read again', async () => {
    await connect('one', '/moving')
    manners['/moving'] = (request) => newest.fetch(request)
    await listed()
    manners['/moving'] = async (request) => {
      const { id, method } = (await request.json()) as { id?: number; method: string }
      const reply = (result: object, init: ResponseInit = {}) => Response.json({ jsonrpc: '2.0', id, result }, init)
      const greeting = {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      if (method === 'initialize') return reply(greeting, { headers: { 'mcp-session-id': 'new' } })
      if (request.headers.get('mcp-session-id') !== 'new')
        return Response.json(
          { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'No session' } },
          { status: 400 },
        )
      if (id === undefined) return new Response(null, { status: 202 })
      const tools = [{ name: 'search', inputSchema: { type: 'object' } }]
      return reply(method === 'tools/list' ? { tools } : { content: [{ type: 'text', text: 'with a session' }] })
    }
    await until(async () => {
      platform.now += 11_000
      await listed()
      const { body } = await send(message('tools/call', { name: 'one__search', arguments: {} }))
      return body.result?.content[0].text === 'with a session'
    })
  })

  test('find their tool by any listed name where the caller sees too many connections for a list', async () => {
    const ids = [
      'a.b',
      'a_b',
      'a-long-id-that-fills-the-name-by-itself-alone',
      ...Array.from({ length: 98 }, (_, i) => `c${i}`),
    ]
    await Promise.all(ids.map((id) => connect(id, '/both')))
    expect((await send(message('tools/list'))).status).toBe(400)
    const long = names[3] as string
    for (const [id, own] of [
      ['c7', 'search'],
      ['c7', long],
      ['a.b', 'get'],
      ['a_b', 'with.dot'],
      ['a-long-id-that-fills-the-name-by-itself-alone', 'get'],
    ] as const) {
      const { body } = await send(message('tools/call', { name: listedName(id, own, 46), arguments: {} }))
      expect({ id, own, text: body.result?.content[0].text }).toEqual({ id, own, text: `both ${own}` })
    }
    const unknown = await send(message('tools/call', { name: 'c7__search_00000000', arguments: {} }))
    expect(unknown.body.error).toMatchObject({ code: -32_602, message: 'Unknown tool: c7__search_00000000' })
  })

  test('that the policy refuses name its rule', async () => {
    await connect('one', '/both')
    const credential = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ metadata: { connectionId: 'one' }, rpcReqMatch: { 'params.name': '^search$' } }],
    })
    const { status, body } = await send(message('tools/call', { name: 'one.get' }), { credential })
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: -32003 })
    expect(body.error.message).toContain('policy[0].rpcReqMatch.params.name')
    expect(calls).toEqual([])
  })
})

describe('a mock', () => {
  test('is called and listed like a server, and answers under the id of its client', async () => {
    const credential = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ metadata: { connectionId: 'weather-cabin' } }],
    })
    expect(await listed({ credential })).toContain('weather-cabin__get_forecast')
    for (const id of [42, 'text'])
      for (const name of ['weather-cabin__get_forecast', 'weather-cabin__nothing'])
        expect((await send(message('tools/call', { name, arguments: {} }, id), { credential })).body.id).toBe(id)
  })
})

describe('the endpoint itself', () => {
  test('greets without asking a server, and says what is not available', async () => {
    await connect('one', '/both')
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    const first = await send(message('initialize', params))
    expect(first.body.result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'postern', title: 'ada' },
    })
    expect(first.headers.get('mcp-session-id')).toStartWith('postern.')
    expect(seen).toEqual([])
    await send(message('tools/list'))
    const { body } = await send(message('initialize', params))
    expect(body.result.instructions).toContain('## one\nUse both with care.')
  })

  test('a greeting takes its owner’s time, and so does each connection that it looks at', async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    const page = await platform.fetch('/connect/ada', { headers: bearer(sampleKeys.ada) })
    const { connections } = (await page.json()) as { connections: unknown[] }
    using spend = spyOn(platform.fairness.time, 'spend')
    await send(message('initialize', params))
    const spent = spend.mock.calls.map(([owner, milliseconds]) => [owner, milliseconds.toFixed(3)])
    expect(spent).toContainEqual(['ada', '0.500'])
    expect(spent).toContainEqual(['ada', (connections.length * 0.025).toFixed(3)])
  })

  test('answers ping, and no method that it cannot route', async () => {
    expect((await send(message('ping'))).body).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    for (const method of ['tasks/list', 'resources/subscribe', 'logging/setLevel', 'x'])
      expect((await send(message(method))).body.error.code).toBe(-32601)
    expect((await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'one__search', arguments: {} } }
    const { status, body } = await send(call)
    expect({ status, code: body.error.code }).toEqual({ status: 400, code: -32_600 })
  })

  test('refuses unknown parameters, other methods, and whoever may not come here', async () => {
    expect((await send(message('ping'), { query: '?x=1' })).status).toBe(400)
    expect((await send(message('ping'), { query: '?names=46' })).status).toBe(400)
    expect((await send(message('ping'), { query: '?names=64&status=tool' })).status).toBe(200)
    expect((await send(message('ping'), { credential: 'nobody' })).status).toBe(401)
    const put = await platform.fetch('/connect/ada/mcp', { method: 'PUT', headers: bearer(sampleKeys.ada), body: '{}' })
    expect({ status: put.status, allow: put.headers.get('allow') }).toEqual({ status: 405, allow: 'GET, POST' })
    const readOnly = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations: 'read' }] })
    expect((await send(message('ping'), { credential: readOnly })).status).toBe(403)
  })
})

describe('the same as the endpoints of the connections', () => {
  test('a token may do here what it may do there, under any policy, and sees the same tools', async () => {
    const chance = random(7)
    const ids = ['alpha', 'beta', 'gamma']
    for (const id of ids) await connect(id, '/both', { metadata: { team: id === 'beta' ? 'b' : 'a' } })
    const constraint = () => ({
      resources: 'connections',
      ...(chance.chance(0.5) && {
        metadata: chance.pick([{ team: 'a' }, { connectionId: 'beta' }, [{ connectionId: 'alpha' }, { team: 'b' }]]),
      }),
      ...(chance.chance(0.2) && { operations: chance.pick(['execute', 'read', ['read', 'execute']]) }),
      ...(chance.chance(0.6) && {
        rpcReqMatch: chance.pick([
          { 'params.name': '^s' },
          { 'params.name': '\\.|long' },
          { 'params.name': '__' },
          { method: '^tools/' },
          { method: '^(initialize|tools/list)$' },
          { 'params.arguments.team': '^ops$' },
          { id: '^ok' },
        ]),
      }),
    })
    let [allowed, refused] = [0, 0]
    for (let round = 0; round < 15; round += 1) {
      const policy = Array.from({ length: 1 + chance.int(2) }, constraint)
      const credential = await mintToken(platform.fetch, sampleKeys.ada, { policy })
      const single = async (id: string, body: object) => {
        const response = await platform.fetch(`/connect/ada/${id}/mcp`, {
          ...{ method: 'POST', headers: bearer(credential), body: JSON.stringify(body) },
        })
        return { status: response.status, body: await messageIn(response) }
      }
      const alone: string[] = []
      for (const id of ids) {
        const { body } = await single(id, message('tools/list'))
        for (const { name } of (body.result?.tools ?? []) as { name: string }[]) alone.push(listedName(id, name, 46))
      }
      const joined = await send(message('tools/list'), { credential })
      const own = ((joined.body.result?.tools ?? []) as { name: string }[]).map(({ name }) => name)
      expect(own.filter((name) => ids.some((id) => name.startsWith(id)))).toEqual(alone)
      for (let i = 0; i < 6; i += 1) {
        const [id, name] = [chance.pick(ids), chance.pick(names)]
        const rpcId = chance.pick(['ok-1', 'other'])
        const args = { team: chance.pick(['ops', 'dev']) }
        const body = (called: string) => ({
          jsonrpc: '2.0',
          id: rpcId,
          method: 'tools/call',
          params: { name: called, arguments: args },
        })
        calls = []
        const there = await single(id, body(name))
        const wasAllowed = calls.length === 1
        calls = []
        const here = await send(
          body(chance.pick([listedName(id, name, 46), listedName(id, name, 64), `${id}.${name}`])),
          { credential },
        )
        expect(calls).toEqual(wasAllowed ? [`both ${name}`] : [])
        if (wasAllowed) expect(here.body.result.content[0]).toEqual(there.body.result.content[0])
        if (wasAllowed) allowed += 1
        else refused += 1
      }
    }
    expect(Math.min(allowed, refused)).toBeGreaterThan(10)
  })
})
