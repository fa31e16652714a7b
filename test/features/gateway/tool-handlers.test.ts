/** `.tools`: a connection's tools by plain HTTP, enforced as the list or call that each request stands for. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import { writingTools } from '../../../src/features/gateway/tool-handlers.ts'
import { toolPagesMax, toolsListedMax } from '../../../src/features/gateway/tool-requests.ts'
import { parsedResponseCharsMax, toolsCharsMax } from '../../../src/limits.ts'
import { bytesPerCharacter } from '../../../src/storage/bytes.ts'
import { type Upstream, UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

const mocked = '/connect/northwind-support/tickets.support-amer/.tools'
const names = ['issues.search', 'issues.get', 'issues.create', 'issues.update', 'comments.add', 'queues.list']

/** What the upstream answers to the body of a request; each counts. */
let manner: (
  body: { method: string; id?: number; params: Record<string, unknown> },
  headers: Headers,
) => Response | Promise<Response>
let sent: { method: string; params: Record<string, unknown> }[] = []
let platform: TestPlatform

beforeEach(async () => {
  sent = []
  manner = () => new Response(null, { status: 500 })
  platform = await createTestPlatform({ upstream })
})

const upstream: Upstream = {
  async send({ body, headers }) {
    const message = JSON.parse(typeof body === 'string' ? body : Buffer.from(body ?? []).toString())
    sent.push(message)
    const answer = await manner(message, new Headers(headers))
    const isStream = answer.headers.get('content-type') === 'text/event-stream' && answer.body !== null
    return {
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      body: isStream ? (answer.body as ReadableStream<Uint8Array>) : new Uint8Array(await answer.arrayBuffer()),
    }
  },
}

async function send(
  path: string,
  {
    method = 'GET',
    body: given,
    credential = sampleKeys.operator as string,
  }: { method?: string; body?: unknown; credential?: string } = {},
) {
  const response = await platform.fetch(path, {
    method,
    headers: {
      authorization: `Bearer ${credential}`,
      ...(given !== undefined && { 'content-type': 'application/json' }),
    },
    ...(given !== undefined && { body: typeof given === 'string' ? given : JSON.stringify(given) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: what it is, is what these tests look at
  const body = (await response.json()) as any
  return { status: response.status, headers: response.headers, body }
}
/** A connection to the upstream of this test, made while it is not there. */
async function connected(): Promise<string> {
  // Requests are counted: pins would read the first list once more.
  const body = { mcpUrl: 'https://example.com/mcp', pins: 'off' }
  const made = await send('/connect/ada/one', { method: 'PUT', body })
  expect(made.status).toBe(201)
  sent = []
  return '/connect/ada/one/.tools'
}
const answer = (id: number | undefined, result: object) => Response.json({ jsonrpc: '2.0', id, result })

describe('.tools', () => {
  test('lists the tools, one of them, or those below a prefix', async () => {
    const named = (body: { tools: { name: string }[] }) => body.tools.map(({ name }) => name)
    expect(named((await send(mocked)).body)).toEqual(names)
    for (const path of ['issues.get', 'issues/get', 'issues%2Fget', 'issues%2fget']) {
      const { status, body } = await send(`${mocked}/${path}`)
      expect({ status, name: body.name, schema: body.inputSchema.type }).toEqual({
        status: 200,
        name: 'issues.get',
        schema: 'object',
      })
    }
    expect(named((await send(`${mocked}/issues`)).body)).toEqual(names.slice(0, 4))
    for (const path of ['none', 'issue', 'issues.', '%ff']) {
      expect(await send(`${mocked}/${path}`)).toMatchObject({ status: 404, body: { error: 'not_found' } })
    }
  })

  test('calls a tool with the body as its arguments, and answers its result', async () => {
    const { status, body } = await send(`${mocked}/issues/get`, { method: 'POST', body: { id: 'SUP-4821' } })
    expect({ status, subject: body.structuredContent.subject }).toEqual({
      status: 200,
      subject: 'Tent arrived without poles',
    })
    const without = await send(`${mocked}/queues.list`, { method: 'POST' })
    expect({ status: without.status, isError: without.body.isError }).toEqual({ status: 200, isError: undefined })
    const wrong = await send(`${mocked}/issues.get`, { method: 'POST', body: { id: 1 } })
    expect(wrong).toMatchObject({ status: 200, body: { isError: true } })
    const rows: [unknown, number, string][] = [
      ['[]', 400, 'the body must be an object'],
      ['"id"', 400, 'the body must be an object'],
      ['{"id":"a","id":"b"}', 400, 'id: is given twice'],
      ['{', 400, 'is not JSON'],
      ['{"id":12345678901234567890}', 400, 'id: is a number that cannot be kept as it is written'],
      [`{"a":"${'x'.repeat(1_100_000)}"}`, 413, 'too large'],
    ]
    for (const [given, code, message] of rows) {
      const refused = await send(`${mocked}/issues.get`, { method: 'POST', body: given })
      expect(refused.status).toBe(code)
      expect(refused.body.message).toContain(message)
    }
    expect(await send(`${mocked}/none`, { method: 'POST', body: {} })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  test('is enforced as the list or the call that it stands for', async () => {
    const policy = [
      {
        operations: 'execute',
        rpcReqMatch: { method: '^tools/', 'params.name': '^issues\\.', 'params.arguments.id': '^SUP-4' },
      },
    ]
    const token = await mintToken(platform.fetch, sampleKeys.grace, { policy })
    const credential = token
    expect((await send(mocked, { credential })).body.tools.length).toBe(4)
    expect((await send(`${mocked}/queues.list`, { credential })).status).toBe(404)
    expect((await send(`${mocked}/issues.get`, { credential, method: 'POST', body: { id: 'SUP-4821' } })).status).toBe(
      200,
    )
    for (const [tool, body, path] of [
      ['issues.get', { id: 'SUP-5' }, 'params.arguments.id'],
      ['issues.get', {}, 'params.arguments.id'],
      ['queues.list', { id: 'SUP-4821' }, 'params.name'],
    ] as const) {
      expect(await send(`${mocked}/${tool}`, { credential, method: 'POST', body })).toMatchObject({
        status: 403,
        body: { error: 'forbidden', message: `The token does not allow this: policy[0].rpcReqMatch.${path}` },
      })
    }
    const reader = await mintToken(platform.fetch, sampleKeys.grace, { policy: [{ operations: 'read' }] })
    expect((await send(mocked, { credential: reader })).status).toBe(403)
    expect((await send(mocked, { credential: 'wrong' })).status).toBe(401)
    expect((await send(mocked, { credential: sampleKeys.jonas })).status).toBe(404)
    expect((await send('/connect/northwind-support/none/.tools')).status).toBe(404)
    expect(await send(`${mocked}?a=1`)).toMatchObject({ status: 400 })
    // No name at all is no tool.
    expect(await send(`${mocked}/`, { method: 'POST' })).toMatchObject({ status: 404, body: { error: 'not_found' } })
    expect((await send(mocked, { method: 'DELETE' })).headers.get('allow')).toBe('GET')
    expect((await send(`${mocked}/a`, { method: 'PUT' })).headers.get('allow')).toBe('GET, POST')
  })
})

describe('.tools of a real upstream', () => {
  test('opens a session once, reads all pages, and takes the answer out of a stream', async () => {
    const path = await connected()
    manner = ({ method, id, params }, headers) => {
      if (method === 'initialize') {
        const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
        return Response.json({ jsonrpc: '2.0', id, result }, { headers: { 'mcp-session-id': 'S' } })
      }
      if (id === undefined) return new Response(null, { status: 202 })
      expect(headers.get('mcp-session-id')).toBe('S')
      if (method === 'tools/list') {
        const { cursor } = params as { cursor?: string }
        return answer(
          id,
          cursor === undefined ? { tools: [{ name: 'a' }], nextCursor: 'two' } : { tools: [{ name: 'b' }] },
        )
      }
      const events = [
        { method: 'notifications/progress', params: {} },
        { id, result: { content: [{ type: 'text', text: 'é' }] } },
      ]
      const text = events
        .map((event) => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...event })}\n\n`)
        .join('')
      // Servers that can resume begin with an event that is there for its id alone.
      return new Response(`id: 1\ndata: \n\n${text}`, { headers: { 'content-type': 'text/event-stream' } })
    }
    expect((await send(path)).body).toEqual({ tools: [{ name: 'a' }, { name: 'b' }] })
    expect((await send(`${path}/a`, { method: 'POST', body: { x: 1 } })).body).toEqual({
      content: [{ type: 'text', text: 'é' }],
    })
    expect(sent.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/list',
      'tools/call',
    ])
    expect(sent.at(-1)?.params).toEqual({ name: 'a', arguments: { x: 1 } })
  })

  test('speaks the newer revision to a server that knows no other, and calls once', async () => {
    const path = await connected()
    const calls: string[] = []
    const handler = createMcpHandler(
      () => {
        const server = new Server({ name: 'new', version: '1' }, { capabilities: { tools: {} } })
        server.setRequestHandler('tools/list', async () => ({
          tools: [{ name: 'a b', inputSchema: { type: 'object' } }],
        }))
        server.setRequestHandler('tools/call', async ({ params }) => {
          calls.push(params.name)
          return { content: [] }
        })
        return server
      },
      { legacy: 'reject' },
    )
    manner = (body, headers) =>
      handler.fetch(new Request('http://x/', { method: 'POST', headers, body: JSON.stringify(body) }))
    expect((await send(path)).body.tools[0].name).toBe('a b')
    expect((await send(`${path}/a%20b`, { method: 'POST', body: {} })).body.content).toEqual([])
    expect(calls).toEqual(['a b'])
  })

  const failing: [what: string, respond: typeof manner, status: number, error: string][] = [
    ['is down', () => Promise.reject(new UpstreamError('down', 'nobody is there')), 502, 'upstream_error'],
    ['is late', () => Promise.reject(new UpstreamError('late', 'no response within 1 s')), 504, 'upstream_timeout'],
    ['wants authorization', () => new Response(null, { status: 401 }), 401, 'upstream_unauthorized'],
    [
      'is no MCP server',
      () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
      502,
      'upstream_error',
    ],
    ['answers something else', ({ id }) => Response.json({ jsonrpc: '2.0', id }), 502, 'upstream_error'],
    [
      'answers an error',
      ({ id }) => Response.json({ jsonrpc: '2.0', id, error: { code: -32_000, message: 'no' } }),
      502,
      'upstream_error',
    ],
    [
      'answers an error without words',
      ({ id }) => Response.json({ jsonrpc: '2.0', id, error: { code: -32_000 } }),
      502,
      'upstream_error',
    ],
    ['answers a text', ({ id }) => Response.json({ jsonrpc: '2.0', id, result: 'x' }), 502, 'upstream_error'],
    ['answers null', ({ id }) => Response.json({ jsonrpc: '2.0', id, result: null }), 502, 'upstream_error'],
    [
      'nests too deep',
      ({ id }) =>
        new Response(
          `{"jsonrpc":"2.0","id":${id},"result":{"tools":[{"name":"a","x":${'['.repeat(2e5)}${']'.repeat(2e5)}}]}}`,
          {
            headers: { 'content-type': 'application/json' },
          },
        ),
      502,
      'upstream_error',
    ],
    [
      'takes no such arguments',
      ({ id }) => Response.json({ jsonrpc: '2.0', id, error: { code: -32_602, message: 'no' } }),
      400,
      'invalid_request',
    ],
  ]
  for (const [what, respond, status, error] of failing) {
    test(`that ${what}`, async () => {
      const path = await connected()
      manner = (body, headers) =>
        body.method === 'initialize' ? answer(body.id, { protocolVersion: '2025-06-18' }) : respond(body, headers)
      for (const refused of [await send(path), await send(`${path}/a`, { method: 'POST', body: {} })]) {
        expect({ status: refused.status, error: refused.body.error }).toEqual({ status, error })
        expect(refused.body.message).toMatch(what.includes('without words') ? /without a message$/ : /./)
      }
      expect(platform.logged.filter((line) => line.includes('"error"'))).toEqual([])
    })
  }

  test('that answers an error of a megabyte: its beginning', async () => {
    const path = await connected()
    manner = (body) =>
      body.method === 'initialize'
        ? answer(body.id, { protocolVersion: '2025-06-18' })
        : Response.json({ jsonrpc: '2.0', id: body.id, error: { code: -32_000, message: 'no'.repeat(500_000) } })
    const { status, body } = await send(`${path}/a`, { method: 'POST', body: {} })
    expect({ status, message: body.message }).toEqual({ status: 502, message: 'no'.repeat(2048) })
  })

  test('that has tools without end is not listed to the end', async () => {
    const path = await connected()
    manner = ({ id }) => answer(id, { tools: Array.from({ length: 300 }, () => ({ name: 'a' })), nextCursor: 'more' })
    expect(await send(path)).toMatchObject({
      status: 502,
      body: { message: 'The MCP server has more than 20000 tools' },
    })
  })

  test('is listed up to its last tool', async () => {
    const path = await connected()
    let count = toolsListedMax
    manner = ({ id }) => answer(id, { tools: Array.from({ length: count }, () => ({ name: 'a' })) })
    expect((await send(path)).body.tools).toHaveLength(toolsListedMax)
    count += 1
    expect((await send(path)).status).toBe(502)
    // Only those that are wanted count.
    expect((await send(`${path}/b`)).status).toBe(404)
  })

  test('is listed with names of so many characters, and not with a longer one', async () => {
    const path = await connected()
    let name = 'a'.repeat(4096)
    manner = ({ id }) => answer(id, { tools: [{ name }] })
    expect((await send(path)).body.tools).toHaveLength(1)
    name += 'a'
    const message = 'The MCP server has tools whose name is longer than 4096 characters'
    expect(await send(path)).toMatchObject({ status: 502, body: { message } })
  })

  /** An answer of so many characters. */
  const long = (characters: number, more = '') => {
    const before = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"`
    const after = `"}]${more}}}`
    const text = 'a'.repeat(characters - before.length - after.length)
    return new Response(before + text + after, { headers: { 'content-type': 'application/json' } })
  }

  test('is listed up to its last character', async () => {
    const roomy = { memory: new Shares(2 ** 40), parsed: new Shares(2 ** 40) }
    platform = await createTestPlatform({ upstream, fairness: { ...createFairness(), ...roomy } })
    const path = await connected()
    let pages = toolsCharsMax / parsedResponseCharsMax
    let at = 0
    manner = ({ method }) => {
      if (method !== 'tools/list') return long(100)
      at += 1
      return long(parsedResponseCharsMax, at < pages ? ',"nextCursor":"more"' : '')
    }
    expect((await send(path)).body.tools).toHaveLength(pages)
    at = 0
    pages += 1
    const message = `The MCP server’s list of tools is larger than ${toolsCharsMax} bytes`
    expect(await send(path)).toMatchObject({ status: 502, body: { message } })
  })

  test('is listed while its caller has memory for it, which it then has again', async () => {
    // A quarter is one caller's.
    const fairness = { ...createFairness(), memory: new Shares(4 * 1000 * bytesPerCharacter) }
    platform = await createTestPlatform({ upstream, fairness })
    const path = await connected()
    manner = () => long(1000)
    for (let i = 0; i < 3; i += 1) expect((await send(path)).status).toBe(200)
    manner = () => long(1001)
    const refused = await send(path)
    expect([refused.status, refused.headers.get('retry-after'), refused.body.message]).toEqual([
      429,
      '1',
      'This caller has too many unread responses open: read or close some; try again in 1 s',
    ])
    manner = () => long(1000)
    expect((await send(path)).status).toBe(200)
  })

  test('is listed with 15 MB on many pages, of which the parsed form of one is there at a time', async () => {
    const path = await connected()
    const description = 'x'.repeat(2 ** 20)
    manner = ({ id, params }) => {
      const page = Number((params as { cursor?: string } | undefined)?.cursor ?? 0)
      return answer(id, { tools: [{ name: `t${page}`, description }], ...(page < 14 && { nextCursor: `${page + 1}` }) })
    }
    const { status, body } = await send(path)
    expect([status, body.tools?.length]).toEqual([200, 15])
  })

  test('says in a stream, too, why a list is refused', async () => {
    const path = await connected()
    const name = 'x'.repeat(5000)
    const words = 'The MCP server has tools whose name is longer than 4096 characters'
    for (const isStream of [false, true]) {
      manner = ({ id }) => {
        const json = JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [{ name }] } })
        const headers = { 'content-type': isStream ? 'text/event-stream' : 'application/json' }
        return new Response(isStream ? `data: ${json}\n\n` : json, { headers })
      }
      expect(await send(path)).toMatchObject({ status: 502, body: { message: words } })
    }
  })

  test('keeps the digits of its numbers', async () => {
    const path = await connected()
    const schema = '{"maximum":9007199254740993,"minimum":12345678901234567890123}'
    manner = ({ id }) =>
      new Response(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[{"name":"a","inputSchema":${schema}}]}}`,
        {
          headers: { 'content-type': 'application/json' },
        },
      )
    const response = await platform.fetch(path, { headers: { authorization: `Bearer ${sampleKeys.ada}` } })
    expect(await response.text()).toContain(schema)
  })

  test('whose list is none does not speak MCP', async () => {
    const path = await connected()
    for (const tools of [undefined, null, 'a', {}]) {
      manner = ({ id }) => answer(id, { tools })
      expect(await send(path)).toMatchObject({
        status: 502,
        body: { message: 'The MCP server does not answer in MCP: check the URL of the connection' },
      })
    }
  })

  test('that lists what has no name lists the rest', async () => {
    const path = await connected()
    manner = ({ id }) => answer(id, { tools: [null, 5, {}, { name: 5 }, { name: 'a' }], nextCursor: 5 })
    expect((await send(path)).body).toEqual({ tools: [{ name: 'a' }] })
  })

  test('that has pages without end is not listed as if a hundred of them were all', async () => {
    const path = await connected()
    let pages = 0
    manner = ({ id, method }) => {
      if (method === 'tools/list') pages += 1
      return answer(id, { tools: [{ name: `t${pages}` }], nextCursor: String(pages) })
    }
    expect(await send(path)).toMatchObject({
      status: 502,
      body: { message: 'The MCP server’s list of tools has more than 100 pages' },
    })
    expect(pages).toBe(toolPagesMax)
  })

  test('that gives null for "no error" is understood', async () => {
    const path = await connected()
    manner = ({ id }) => Response.json({ jsonrpc: '2.0', id, result: { tools: [{ name: 'a' }] }, error: null })
    expect((await send(path)).body).toEqual({ tools: [{ name: 'a' }] })
  })
})

/** A server that answers calls with this text. */
const answering =
  (result: string): typeof manner =>
  ({ method, id }) => {
    if (id === undefined) return new Response(null, { status: 202 })
    const greeting = '{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
    const text = method === 'tools/call' ? result : greeting
    const headers = { 'content-type': 'application/json' }
    return new Response(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`, { headers })
  }

test('the result of a call keeps the digits of its numbers', async () => {
  const path = await connected()
  const result =
    '{"content":[],"structuredContent":{"id":9007199254740993,"__proto__":{"x":[1e400,-12345678901234567890]},"few":0.1}}'
  manner = answering(result)
  const headers = { authorization: `Bearer ${sampleKeys.operator}`, 'content-type': 'application/json' }
  const response = await platform.fetch(`${path}/any`, { method: 'POST', headers, body: '{}' })
  expect(await response.text()).toBe(result)
})

test('a result with a key that is given twice is the one that the runtime reads', async () => {
  const path = await connected()
  manner = answering('{"content":[],"a":{"x":9007199254740993},"a":1}')
  const { body } = await send(`${path}/any`, { method: 'POST', body: {} })
  expect(body).toEqual({ content: [], a: 1 })
})

test('a list is written in steps, each as long as a tool', () => {
  const tools = ['a', 'bc'].map((name) => ({ name }))
  expect([...writingTools(tools)]).toEqual(tools.map((tool) => JSON.stringify(tool).length))
})
