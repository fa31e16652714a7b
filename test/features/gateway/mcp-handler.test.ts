/** MCP through a connection: official clients of both eras, and a real upstream that counts what reaches it. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { createAddresses, type DestinationOf, readAllowedUpstream } from '../../../src/upstream/addresses.ts'
import { createUpstream } from '../../../src/upstream/pooled-upstream.ts'
import { probeRequestsMax } from '../../../src/upstream/probe.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, issuer, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, connectTo } from '../../support/upstream.ts'

interface Seen {
  readonly path: string
  readonly headers: Headers
  readonly text: string
}
let seen: Seen[] = []
let calls: string[] = []

const tools = ['issues.get', 'issues.list', 'files.drop'].map((name) => ({
  name,
  inputSchema: { type: 'object' as const },
}))
const mcp = createMcpHandler(() => {
  const server = new Server({ name: 'counting', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', async () => ({ tools }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    calls.push(params.name)
    return { content: [{ type: 'text', text: `called ${params.name}` }] }
  })
  return server
})

/** Speaks 2026-07-28 alone. */
const newest = createMcpHandler(
  () => new Server({ name: 'newest', version: '7', title: 'The newest' }, { capabilities: { tools: {} } }),
  { legacy: 'reject' },
)

const hiddenList = '{"tools":[{"name":"issues.get"},{"name":"HIDDEN"}]}'
const json = (text: string, status = 200) =>
  new Response(text, { status, headers: { 'content-type': 'application/json' } })
const events = (data: string, status = 200) =>
  new Response(`event: message\ndata: ${data}\n\n`, { status, headers: { 'content-type': 'text/event-stream' } })

/** By path: how the upstream behaves. */
const manners: Record<string, (request: Request, text: string) => Response | Promise<Response>> = {
  '/mcp': (request, text) =>
    mcp.fetch(new Request(request.url, { method: 'POST', headers: request.headers, body: text })),
  '/newest': (request, text) =>
    newest.fetch(new Request(request.url, { method: 'POST', headers: request.headers, body: text })),
  '/redirect': () => new Response(null, { status: 307, headers: { location: '/mcp' } }),
  '/broken': () => new Response('oops', { status: 500 }),
  '/html': () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
  '/nonsense': () => new Response('[1]', { headers: { 'content-type': 'application/json' } }),
  '/private': () => new Response(null, { status: 401, headers: { 'www-authenticate': 'Bearer secret="x"' } }),
  '/gzip': () =>
    new Response(Bun.gzipSync(Buffer.alloc(1e6)), {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    }),
  '/deep': () =>
    new Response(`{"jsonrpc":"2.0","id":1,"result":{"tools":[],"x":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`, {
      headers: { 'content-type': 'application/json' },
    }),
  '/batch': () => json(`[{"jsonrpc":"2.0","id":1,"result":${hiddenList}}]`),
  '/batch-event': () => events(`[{"jsonrpc":"2.0","id":1,"result":${hiddenList}}]`),
  '/both': () => json(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"},"result":${hiddenList}}`, 400),
  '/twice': () => json(`{"jsonrpc":"2.0","id":1,"result":${hiddenList},"result":1}`),
  '/event-refusal': () => events('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}', 400),
  '/null': () => json('null'),
  '/comments': () =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (let i = 0; i < 60; i += 1) controller.enqueue(Buffer.alloc(64 * 1024, ':'))
          controller.enqueue('\n\n')
          controller.close()
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    ),
  '/slow': () => new Promise(() => {}),
  '/endless': () =>
    new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1 << 20).fill(0x20)) }), {
      headers: { 'content-type': 'application/json' },
    }),
  '/refuses': () =>
    Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32_602, message: 'no such tool' } }, { status: 400 }),
  // Keeps sessions, and loses them when it is told to.
  '/sessions': (request, text) => {
    const { method, id } = JSON.parse(text)
    const session = request.headers.get('mcp-session-id')
    if (method === 'initialize') {
      sessions += 1
      return Response.json(
        {
          jsonrpc: '2.0',
          id,
          result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } },
        },
        { headers: { 'mcp-session-id': `upstream-${sessions}` } },
      )
    }
    if (session !== `upstream-${sessions}`) return new Response(null, { status: 404 })
    if (id === undefined) return new Response(null, { status: 202 })
    if (method === 'tools/call') calls.push(session)
    return Response.json({ jsonrpc: '2.0', id, result: { session } })
  },
}
let sessions = 0
let upstream: Bun.Server<undefined>
let platform: TestPlatform
let addresses: DestinationOf
let front: Bun.Server<undefined>

beforeAll(() => {
  upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const text = await request.text()
      // The end of a greeting's session may come late.
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      seen.push({ path: pathname, headers: request.headers, text })
      return manners[pathname]?.(request, text) ?? new Response(null, { status: 404 })
    },
  })
})
afterAll(async () => {
  await upstream.stop(true)
  await front.stop(true)
})
beforeEach(async () => {
  seen = []
  calls = []
  await front?.stop(true)
  addresses = createAddresses({
    allowed: ['127.0.0.1'].flatMap((text) => readAllowedUpstream(text) ?? []),
    isPublicAllowed: false,
    isSelf: () => false,
  })
  platform = await createTestPlatform({ upstream: createUpstream(addresses, { pseudonym: 'postern-test' }) })
  front = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: async (request) => {
      const { method, headers } = request
      const body = method === 'POST' ? { body: await request.text() } : {}
      return platform.fetch(new URL(request.url).pathname, { method, headers, ...body })
    },
  })
})

/** A connection to a path of the upstream, without the first contact being counted. */
async function connect(id: string, path: string, more: object = {}): Promise<void> {
  await connectTo(platform, id, `http://127.0.0.1:${upstream.port}${path}`, more)
  seen = []
  calls = []
}
/** The same where a greeting would take its time: the server behaves so only afterwards. */
async function behaving<T>(path: string, run: () => Promise<T>): Promise<T> {
  const usual = manners['/mcp'] as (typeof manners)['x']
  await connect('one', '/mcp')
  manners['/mcp'] = manners[path] as (typeof manners)['x']
  try {
    return await run()
  } finally {
    manners['/mcp'] = usual
  }
}
async function send(
  id: string,
  body: unknown,
  credential: string = sampleKeys.ada,
  headers: Record<string, string> = {},
) {
  const response = await platform.fetch(`/connect/ada/${id}/mcp`, {
    method: 'POST',
    headers: bearer(credential, headers),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  const json = text.startsWith('event:') || text.startsWith('data:') ? text.slice(text.indexOf('data: ') + 6) : text
  return { status: response.status, headers: response.headers, text, body: json === '' ? undefined : JSON.parse(json) }
}
const call = (name: string, id: number | string = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {} },
})
const oneTool = [{ rpcReqMatch: { 'params.name': '^issues\\.' } }]

describe('an official client', () => {
  for (const versions of [undefined, ['2025-06-18']]) {
    test(`lists and calls through a connection, as a token lets it (${versions ?? 'its own choice of revision'})`, async () => {
      await connect('one', '/mcp')
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })
      const client = new Client(
        { name: 'test', version: '1' },
        versions === undefined ? {} : { supportedProtocolVersions: versions },
      )
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${front.port}/connect/ada/one/mcp`), {
          requestInit: { headers: { authorization: `Bearer ${token}` } },
        }),
      )
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['issues.get', 'issues.list'])
      expect(await client.callTool({ name: 'issues.get', arguments: {} })).toMatchObject({
        content: [{ type: 'text', text: 'called issues.get' }],
      })
      await expect(client.callTool({ name: 'files.drop', arguments: {} })).rejects.toThrow(
        'policy[0].rpcReqMatch.params.name',
      )
      await Bun.sleep(0)
      expect(calls).toEqual(['issues.get'])
      await client.close()
    })
  }
})

describe('what reaches the upstream', () => {
  test('are the very bytes that were checked, the connection’s headers and none of the caller’s', async () => {
    await connect('one', '/mcp', { headers: { Authorization: 'Bearer upstream-secret', 'X-Team': 'ops' } })
    const body =
      '{ "jsonrpc":"2.0", "id":"é", "method":"tools/call","params":{"name":"issues.get","arguments":{"n":12345678901234567890,"z":-0}} }'
    const answer = await send('one', body, sampleKeys.ada, {
      cookie: 'a=b',
      'x-api-key': 'k',
      'x-other': 'o',
      'mcp-trace': 't',
    })
    expect({ status: answer.status, id: answer.body.id }).toEqual({ status: 200, id: 'é' })
    const { headers, text } = seen.at(-1) as Seen
    expect(text).toBe(body)
    expect([headers.get('authorization'), headers.get('x-team'), headers.get('mcp-trace')]).toEqual([
      'Bearer upstream-secret',
      'ops',
      't',
    ])
    for (const name of ['cookie', 'x-api-key', 'x-other']) expect(headers.has(name)).toBe(false)
    expect(answer.text).not.toContain('upstream-secret')
  })

  const nulIn = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${params}}}`
  const smuggled: [what: string, body: string, status: number, code: number][] = [
    ['a batch', JSON.stringify([call('files.drop')]), 400, -32_600],
    [
      'a key twice',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"files.drop"}}',
      400,
      -32_700,
    ],
    [
      'a key twice, one escaped',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"issues.get","\\u006eame":"files.drop"}}',
      400,
      -32_700,
    ],
    ['two values', `${JSON.stringify(call('issues.get'))}${JSON.stringify(call('files.drop'))}`, 400, -32_700],
    [
      'deep nesting',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'{"a":'.repeat(70)}1${'}'.repeat(71)}`,
      400,
      -32_700,
    ],
    ['no JSON', 'tools/call', 400, -32_700],
    [
      'a look-alike of the name',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"issues.get","Name":"files.drop"}}',
      400,
      -32_600,
    ],
    [
      'a look-alike of the method',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","Params":{"name":"files.drop"}}',
      400,
      -32_600,
    ],
    [
      'a look-alike in other letters',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"issues.get","argument\u017f":{}}}',
      400,
      -32_600,
    ],
    ['a name that ends at a NUL', nulIn('"name":"issues.get","name\\u0000":"files.drop"'), 400, -32_600],
    ['parameters that end at a NUL', nulIn('"name":"issues.get"},"params\\u0000x":{"name":"files.drop"'), 400, -32_600],
    ['a tool that ends at a NUL', nulIn('"name":"files.drop\\u0000issues.get"'), 403, -32_003],
    [
      'a method that ends at a NUL',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call\\u0000list","params":{"name":"files.drop"}}',
      400,
      -32_600,
    ],
    [
      'another method behind a NUL',
      '{"jsonrpc":"2.0","id":1,"method":"ping","method\\u0000":"tools/call","params":{"name":"files.drop"}}',
      400,
      -32_600,
    ],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"tools/call"}', 400, -32_600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"tools/call"}', 400, -32_600],
    [
      'too much',
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"${'x'.repeat(1_100_000)}"}}`,
      413,
      -32_600,
    ],
    ['a tool that is not allowed', JSON.stringify(call('files.drop')), 403, -32_003],
    [
      'a method that is not a call',
      '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x"}}',
      403,
      -32_003,
    ],
    ['a reply that nobody asked for', '{"jsonrpc":"2.0","id":1,"result":{}}', 403, -32_003],
  ]
  for (const [what, body, status, code] of smuggled) {
    test(`never is ${what}`, async () => {
      await connect('one', '/mcp')
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })
      const answer = await send('one', body, token)
      expect({ status: answer.status, code: answer.body.error.code }).toEqual({ status, code })
      expect(answer.body.jsonrpc).toBe('2.0')
      expect(seen).toEqual([])
    })
  }

  test('are no headers that say something else than the body', async () => {
    await connect('one', '/mcp')
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const body = { ...call('issues.get'), params: { name: 'issues.get', arguments: {}, _meta: meta } }
    const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }
    for (const headers of [
      { ...modern, 'mcp-name': 'files.drop' },
      modern,
      { ...modern, 'mcp-method': 'tools/list', 'mcp-name': 'issues.get' },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-name': 'issues.get' },
      { ...modern, 'mcp-name': 'issues.get', 'mcp-param-region': 'us' },
      { ...modern, 'mcp-name': 'issues.get\u00c3\u00a9' },
    ]) {
      const answer = await send('one', body, sampleKeys.ada, headers as Record<string, string>)
      expect({ headers, status: answer.status, code: answer.body.error.code }).toEqual({
        headers,
        status: 400,
        code: -32_020,
      })
    }
    expect(seen).toEqual([])
    const encoded = `=?base64?${Buffer.from('issues.get').toString('base64')}?=`
    expect((await send('one', body, sampleKeys.ada, { ...modern, 'mcp-name': encoded })).status).toBe(200)
    const placed = { ...body, params: { ...body.params, arguments: { at: { region: 'us' } } } }
    const told = { ...modern, 'mcp-name': 'issues.get', 'mcp-param-region': 'us' }
    expect((await send('one', placed, sampleKeys.ada, told)).status).toBe(200)
    expect(seen.at(-1)?.headers.get('mcp-param-region')).toBe('us')
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }
    const named = { ...modern, 'mcp-method': 'tools/list', 'mcp-name': 'files.drop' }
    expect((await send('one', list, sampleKeys.ada, named)).body.error.code).toBe(-32_020)
    // In the handshake revisions nobody holds them to the body, so nobody gets them.
    await send('one', call('issues.get'), sampleKeys.ada, {
      'mcp-method': 'tools/call',
      'mcp-name': 'files.drop',
      'mcp-param-x': 'y',
    })
    for (const name of ['mcp-method', 'mcp-name', 'mcp-param-x']) expect(seen.at(-1)?.headers.has(name)).toBe(false)
  })
})

describe('refusals', () => {
  test('come before the body is read, in the words of JSON-RPC', async () => {
    await connect('one', '/mcp')
    const reader = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations: 'read' }] })
    const hidden = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'x' } }] })
    const rows: [string, string, number, number, string | null][] = [
      [
        'one',
        'wrong',
        401,
        -32_001,
        `Bearer error="invalid_token", resource_metadata="${issuer}/.well-known/oauth-protected-resource/connect/ada/one/mcp", scope="mcp"`,
      ],
      ['none', sampleKeys.ada, 404, -32_000, null],
      ['one', hidden, 404, -32_000, null],
      ['one', sampleKeys.jonas, 404, -32_000, null],
      ['one', reader, 403, -32_003, 'Bearer error="insufficient_scope"'],
    ]
    for (const [id, credential, status, code, authenticate] of rows) {
      const answer = await send(id, 'not even JSON', credential)
      expect([answer.status, answer.body.error.code, answer.body.id, answer.headers.get('www-authenticate')]).toEqual([
        status,
        code,
        null,
        authenticate,
      ])
    }
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await platform.fetch('/connect/ada/one/mcp', { method, headers: bearer(sampleKeys.ada) })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    }
    expect(seen).toEqual([])
  })

  const manner: [path: string, status: number, code: number][] = [
    ['/redirect', 502, -32_000],
    ['/broken', 502, -32_000],
    ['/html', 502, -32_000],
    ['/nonsense', 502, -32_000],
    ['/gzip', 502, -32_000],
    ['/endless', 502, -32_000],
    ['/slow', 504, -32_000],
    ['/private', 401, -32_001],
    ['/refuses', 400, -32_602],
  ]
  for (const [path, status, code] of manner) {
    test(`of an upstream that is ${path}`, async () => {
      await connect('one', path === '/slow' ? '/mcp' : path)
      const behave = manners['/mcp'] as (typeof manners)['x']
      if (path === '/slow') {
        manners['/mcp'] = manners['/slow'] as (typeof manners)['x']
        const reached = createUpstream(addresses, { pseudonym: 'postern-test' })
        platform = await createTestPlatform({ store: platform.store, upstream: reached, upstreamTimeoutMs: 100 })
      }
      const answer = await send('one', { jsonrpc: '2.0', id: 7, method: 'initialize', params: {} })
      manners['/mcp'] = behave
      expect([answer.status, answer.body.error.code]).toEqual([status, code])
      expect(answer.headers.get('www-authenticate')).toBeNull()
      if (path === '/redirect') expect(seen.map((one) => one.path)).toEqual(['/redirect'])
    })
  }
})

test('a server that speaks only the newest revision is greeted in its own words', async () => {
  await connect('one', '/newest')
  const { status, serverInfo } = (await (
    await platform.fetch('/connect/ada/one', { headers: bearer(sampleKeys.ada) })
  ).json()) as { status: object; serverInfo: object }
  expect({ status, serverInfo }).toEqual({
    status: { state: 'connected' },
    serverInfo: { name: 'newest', version: '7', title: 'The newest' },
  })
})

test('a connection that leads back here is a loop, and is told at its second turn', async () => {
  const told: string[] = []
  manners['/back'] = async (request, text) => {
    const via = request.headers.get('via') ?? ''
    told.push(via)
    const answer = await send('one', text, sampleKeys.ada, { via })
    return new Response(answer.text, { status: answer.status, headers: { 'content-type': 'application/json' } })
  }
  await behaving('/back', async () => {
    const { status, body } = await send('one', { jsonrpc: '2.0', id: 1, method: 'ping' }, sampleKeys.ada, {
      via: '1.1 proxy',
    })
    expect([status, body.error.message]).toEqual([502, expect.stringContaining('508')])
    expect(new Set(told)).toEqual(new Set(['1.1 proxy, 1.1 postern-test']))
  })
})

describe('a rule on a number means the number', () => {
  const account = '^9007199254740992$'
  const small = '^(?:0|5|null)$'
  const cases: [pattern: string, spelt: string, passes: boolean][] = [
    [account, '9007199254740992', true],
    [account, '"9007199254740992"', true],
    [account, '9007199254740993', false],
    [account, '9007199254740992.4', false],
    [small, '5', true],
    [small, '5.0', true],
    [small, '50e-1', true],
    [small, '0', true],
    [small, '-0', false],
    [small, '4.9999999999999999999', false],
    [small, '5.00000000000000000000000001', false],
    [small, '1e-400', false],
    [small, '1e999', false],
  ]
  for (const [pattern, spelt, passes] of cases) {
    test(`${pattern} and ${spelt}`, async () => {
      await connect('one', '/mcp')
      const policy = [{ rpcReqMatch: { 'params.arguments.account': pattern } }]
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"issues.get","arguments":{"account":${spelt}}}}`
      expect((await send('one', text, token)).status).toBe(passes ? 200 : 403)
      expect(seen.filter((one) => one.text === text)).toHaveLength(passes ? 1 : 0)
      // Where no rule asks, its own text goes on.
      expect((await send('one', text)).status).toBe(200)
    })
  }
  test('an id that would come back as another one is none', async () => {
    await connect('one', '/mcp')
    const answer = await send('one', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}')
    expect([answer.status, answer.body.error.code]).toEqual([400, -32_600])
  })
})

test('a header that repeats an argument goes on under its name alone, where a rule speaks of arguments', async () => {
  await connect('one', '/mcp')
  const body = {
    ...call('issues.get'),
    params: {
      name: 'issues.get',
      arguments: { owner_id: 'me', note: 'evil' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }
  const repeated = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'issues.get',
    'mcp-param-owner': 'evil',
    'mcp-param-owner-id': 'me',
  }
  const policy = [{ rpcReqMatch: { 'params.arguments.owner_id': '^me$' } }]
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
  const passedOn = async (credential: string) => {
    expect((await send('one', body, credential, repeated)).status).toBe(200)
    const { headers } = seen.at(-1) as Seen
    return ['mcp-param-owner', 'mcp-param-owner-id'].map((name) => headers.get(name))
  }
  expect(await passedOn(sampleKeys.ada)).toEqual(['evil', 'me'])
  expect(await passedOn(token)).toEqual([null, 'me'])
})

describe('lists of tools and patterns that would hold up the rest', () => {
  const listing = (count: number, nameChars: number) => () =>
    Response.json({
      jsonrpc: '2.0',
      id: 1,
      result: {
        tools: Array.from({ length: count }, (_, i) => ({
          name: `${i}${'ab'.repeat(nameChars / 2)}`,
          inputSchema: {},
        })),
      },
    })
  const costly = { 'params.name': '(a|b)*a(a|b){280}c' }
  const policy = [{ rpcReqMatch: costly }, { rpcReqMatch: { 'params.name': '(a|b)*b(a|b){280}c' } }]
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  test('are narrowed in turns: others are answered meanwhile', async () => {
    manners['/listed'] = listing(10, 1000)
    await behaving('/listed', async () => {
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
      const order: string[] = []
      const listed = send('one', list, token).then(({ status, body }) => {
        order.push('list')
        expect([status, body.result.tools]).toEqual([200, []])
      })
      // Once the upstream was asked, each turn of the event loop leaves room for one of these.
      while (!seen.some(({ text }) => text.includes('tools/list')))
        await new Promise((resolve) => setImmediate(resolve))
      for (let i = 0; i < 5; i += 1) {
        await new Promise((resolve) => setImmediate(resolve))
        order.push(`health ${(await platform.fetch('/health')).status}`)
      }
      await listed
      expect(order.slice(0, 3)).toEqual(['health 200', 'health 200', 'health 200'])
      expect(order).toContain('list')
    })
  })

  const tooMuch: Record<string, ReturnType<typeof listing>> = {
    'too many tools for this token’s patterns': listing(300, 1000),
    'too large or too deeply nested': listing(1, 5_000_000),
  }
  for (const [message, manner] of Object.entries(tooMuch)) {
    test(`are an error: ${message}`, async () => {
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
      manners['/listed'] = manner
      await behaving('/listed', async () => {
        const answer = await send('one', list, token)
        expect([answer.status, answer.body.error.message]).toEqual([502, expect.stringContaining(message)])
      })
    })
  }

  test('are an error among the events of a stream, for the request that asked', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
    manners['/listed'] = async () => events(await listing(300, 1000)().text())
    await behaving('/listed', async () => {
      const answer = await send('one', { ...list, id: 'mine' }, token)
      expect([answer.status, answer.body]).toEqual([
        200,
        { jsonrpc: '2.0', id: 'mine', error: { code: -32_000, message: expect.stringContaining('too many tools') } },
      ])
    })
  })
})

test('an error of megabytes is not looked into', async () => {
  manners['/complains'] = () => json(`{"jsonrpc":"2.0","id":1,"error":{"data":[${'{},'.repeat(1e6)}1]}}`, 400)
  await behaving('/complains', async () => {
    const answer = await send('one', { jsonrpc: '2.0', id: 1, method: 'ping' })
    expect([answer.status, answer.body.error.message]).toEqual([
      502,
      'The MCP server answered 400 without JSON-RPC: check the URL and the headers of the connection',
    ])
  })
})

describe('what is read here counts for its caller’s share of memory', () => {
  const tools = (bytes: number) =>
    json(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: [], x: 'x'.repeat(bytes) } }))
  const asking: [what: string, method: string, path: string, credential: () => Promise<string>][] = [
    ['a list that is narrowed', 'POST', '/mcp', () => mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })],
    ['.tools', 'GET', '/.tools', async () => sampleKeys.ada],
  ]
  for (const [what, method, path, credential] of asking) {
    test(`${what}, as long as it is`, async () => {
      platform = await createTestPlatform({
        upstream: createUpstream(addresses, { pseudonym: 'postern-test' }),
        fairness: { ...createFairness(), memory: new Shares(100_000) },
      })
      let bytes = 1000
      manners['/listed'] = () => tools(bytes)
      await behaving('/listed', async () => {
        const token = await credential()
        const asked = async () => {
          const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
          const { status } = await platform.fetch(`/connect/ada/one${path}`, {
            method,
            headers: bearer(token),
            ...(method === 'POST' && { body }),
          })
          return status
        }
        // Each gives back what it took.
        for (let i = 0; i < 20; i += 1) expect(await asked()).toBe(200)
        bytes = 10_000
        expect(await asked()).toBe(429)
        bytes = 1000
        expect(await asked()).toBe(200)
      })
    })
  }
})

test('a list of tools that is nested too deep to be narrowed is no answer', async () => {
  await connect('one', '/deep')
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })
  const answer = await send('one', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, token)
  expect([answer.status, answer.body.error.message]).toEqual([502, expect.stringContaining('too deeply nested')])
})

describe('a list of tools is narrowed, however it is told', () => {
  for (const path of ['/batch', '/batch-event', '/both', '/twice']) {
    test(`by an upstream that is ${path}`, async () => {
      const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })
      const { status, text } = await behaving(path, async () => {
        const response = await platform.fetch('/connect/ada/one/mcp', {
          method: 'POST',
          headers: { ...bearer(token), 'mcp-session-id': 'none' },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
        })
        return { status: response.status, text: await response.text() }
      })
      expect(text).not.toContain('HIDDEN')
      expect(status).toBe({ '/batch': 502, '/both': 400 }[path] ?? 200)
    })
  }
})

describe('everything stays alive', () => {
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
  test('with a stream of megabytes', async () => {
    const length = await behaving('/comments', async () => {
      const body = JSON.stringify({ ...initialize, method: 'prompts/list' })
      const request = { method: 'POST', headers: { ...bearer(sampleKeys.ada), 'mcp-session-id': 'none' }, body }
      return (await (await platform.fetch('/connect/ada/one/mcp', request)).arrayBuffer()).byteLength
    })
    expect(length).toBe(60 * 64 * 1024 + 2)
  })
  test('with a greeting of megabytes', async () => {
    const made = await platform.fetch('/connect/ada/one', {
      method: 'PUT',
      headers: bearer(sampleKeys.ada),
      body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/comments` }),
    })
    expect(await made.json()).toMatchObject({ status: { state: 'error' } })
    expect((await platform.fetch('/health')).status).toBe(200)
  })
  test('with a greeting that asks and asks', async () => {
    const asked = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })
    manners['/asks'] = () => events(`${asked}\n\ndata: `.repeat(4000) + asked)
    const made = await platform.fetch('/connect/ada/one', {
      method: 'PUT',
      headers: bearer(sampleKeys.ada),
      body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/asks` }),
    })
    expect(await made.json()).toMatchObject({
      status: {
        state: 'error',
        message: 'The server cannot be used: postern would need too many requests to initialize it',
      },
    })
    expect(seen.length).toBeLessThanOrEqual(probeRequestsMax)
  })
  test('with a refusal in a stream', async () => {
    expect((await behaving('/event-refusal', () => send('one', initialize))).status).toBe(502)
  })
  test('with a greeting of null', async () => {
    expect((await behaving('/null', () => send('one', call('issues.get')))).status).toBe(502)
  })
})

test('a credential that ends while the body arrives calls nothing', async () => {
  await connect('one', '/mcp')
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
  const body = new ReadableStream({
    pull(controller) {
      platform.now += 11_000
      controller.enqueue(Buffer.from(JSON.stringify(call('issues.get'))))
      controller.close()
    },
  })
  const response = await platform.fetch('/connect/ada/one/mcp', { method: 'POST', headers: bearer(token), body })
  expect(response.status).toBe(401)
  expect(calls).toEqual([])
})

describe('sessions', () => {
  test('are opened for a client that has none, kept, and opened again; a call is never sent twice', async () => {
    await connect('one', '/sessions')
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const first = (await send('one', ping)).body.result.session
    expect((await send('one', ping)).body.result.session).toBe(first)
    sessions += 1
    expect((await send('one', ping)).body.result.session).toBe(`upstream-${sessions}`)
    sessions += 1
    const before = seen.length
    const lost = await send('one', call('issues.get'))
    expect([lost.status, lost.body.error.message]).toEqual([502, expect.stringContaining('call again')])
    expect(seen.slice(before).filter(({ text }) => text.includes('tools/call')).length).toBe(1)
    expect((await send('one', call('issues.get'))).status).toBe(200)
    expect(calls).toEqual([`upstream-${sessions}`])
  })

  test('let a reply pass where a policy is about tools alone, which a reply without a session does not', async () => {
    await connect('one', '/sessions')
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: oneTool })
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    const anyone = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ rpcReqMatch: { method: '^(initialize|notifications/)' } }],
    })
    const given = async (credential: string) =>
      (await send('one', initialize, credential)).headers.get('mcp-session-id') ?? ''
    const reply = { jsonrpc: '2.0', id: 'asked', result: {} }
    const status = async (headers: Record<string, string>) => (await send('one', reply, token, headers)).status
    expect(await status({ 'mcp-session-id': await given(token) })).toBe(200)
    expect(await status({ 'mcp-session-id': await given(anyone) })).toBe(403)
    expect(await status({})).toBe(403)
  })

  test('belong to the token that opened them', async () => {
    await connect('one', '/sessions')
    const given = (await send('one', { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })).headers.get(
      'mcp-session-id',
    ) as string
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const mine = await send('one', ping, sampleKeys.ada, { 'mcp-session-id': given })
    expect([mine.body.result.session, mine.headers.get('mcp-session-id')]).toEqual([`upstream-${sessions}`, given])
    expect(given).not.toContain(`upstream-${sessions}`)
    const other = await mintToken(platform.fetch, sampleKeys.ada)
    const before = seen.length
    const theirs = await send('one', ping, other, { 'mcp-session-id': given })
    expect([theirs.status, theirs.body.error.message]).toEqual([404, 'The session has ended: initialize again'])
    expect(seen).toHaveLength(before)
    // What a client makes up is none of ours, and nobody is told of it.
    const invented = await send('one', ping, other, { 'mcp-session-id': 'mine' })
    expect([invented.status, invented.headers.get('mcp-session-id')]).toEqual([200, null])
    expect(invented.body.result.session).not.toBe(mine.body.result.session)
  })

  test('outlive a restart, and others that come after them', async () => {
    await connect('one', '/sessions')
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    const given = (await send('one', initialize)).headers.get('mcp-session-id') as string
    const upstreams = `upstream-${sessions}`
    for (let i = 0; i < 3; i += 1) await send('one', initialize, sampleKeys.operator)
    platform = await createTestPlatform({
      store: platform.store,
      upstream: createUpstream(addresses, { pseudonym: 'postern-test' }),
    })
    await send('one', { jsonrpc: '2.0', id: 1, method: 'ping' }, sampleKeys.ada, { 'mcp-session-id': given })
    expect(seen.at(-1)?.headers.get('mcp-session-id')).toBe(upstreams)
  })

  test('of another connection, by the same name at another time, are over', async () => {
    await connect('one', '/sessions')
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    const given = (await send('one', initialize)).headers.get('mcp-session-id') as string
    await platform.fetch('/connect/ada/one', { method: 'DELETE', headers: bearer(sampleKeys.ada) })
    platform.now += 1
    await connect('one', '/sessions')
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    expect((await send('one', ping, sampleKeys.ada, { 'mcp-session-id': given })).status).toBe(404)
  })

  test('whose name is too long to be sealed are told', async () => {
    manners['/long'] = (_, text) =>
      Response.json(
        { jsonrpc: '2.0', id: JSON.parse(text).id, result: {} },
        { headers: { 'mcp-session-id': 'x'.repeat(513) } },
      )
    await connect('one', '/long')
    const answer = await send('one', { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })
    expect([answer.status, answer.body.error.message]).toEqual([502, expect.stringContaining('too long')])
  })
})
