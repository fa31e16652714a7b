/**
 * The compiled executable between official clients and servers that are not ours: the 1.x SDK's client, the 2.x client,
 * `@modelcontextprotocol/server-everything` and the scenarios of `@modelcontextprotocol/conformance`.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { mintToken } from '../api/cases.ts'
import { type Server, sendTo, startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'

const packages = resolve(import.meta.dir, '../../node_modules/@modelcontextprotocol')
let place: Workplace
let server: Server
let everything: { readonly url: string; stop(): void }

/** Its port is given to it, and not told back: the one that a listener of ours just gave up. */
async function startEverything(): Promise<typeof everything> {
  for (;;) {
    const holder = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const { port } = holder
    await holder.stop(true)
    const child = Bun.spawn(['node', join(packages, 'server-everything/dist/index.js'), 'streamableHttp'], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const reader = child.stderr.getReader()
    let said = ''
    while (!said.includes('listening')) {
      const { done, value } = await reader.read()
      if (done) break
      said += Buffer.from(value).toString()
    }
    if (said.includes('listening')) return { url: `http://127.0.0.1:${port}/mcp`, stop: () => child.kill() }
  }
}

beforeAll(async () => {
  place = workplace()
  everything = await startEverything()
  server = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1'])
  expect(await connectTo('everything', everything.url)).toMatchObject({
    status: { state: 'connected' },
    serverInfo: { title: 'Everything Reference Server' },
  })
})

async function connectTo(id: string, mcpUrl: string): Promise<unknown> {
  const made = await sendTo(server)(`/connect/ada/${id}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
    body: JSON.stringify({ mcpUrl }),
  })
  return made.json()
}

afterAll(async () => {
  everything.stop()
  await server.kill('SIGKILL')
  place[Symbol.dispose]()
})

const endpoint = (connectionId: string) => new URL(`${server.url}/connect/ada/${connectionId}/mcp`)
const bearer = (credential: string) => ({ requestInit: { headers: { authorization: `Bearer ${credential}` } } })
const policy = [{ operations: 'execute', rpcReqMatch: { 'params.name': '^(?:echo|get-sum)$' } }]

/** What both clients have in common here. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<object>
  close(): Promise<void>
}
const clients: readonly (readonly [name: string, connect: (url: URL, credential: string) => Promise<AnyClient>])[] = [
  [
    'the client of the 1.x SDK',
    async (url, credential) => {
      const client = new Client1({ name: 'test', version: '1' })
      // Its types were made for another strictness than ours.
      await client.connect(new Transport1(url, bearer(credential)) as never)
      return client as unknown as AnyClient
    },
  ],
  [
    'the 2.x client',
    async (url, credential) => {
      const client = new Client2({ name: 'test', version: '1' })
      await client.connect(new Transport2(url, bearer(credential)))
      return client as unknown as AnyClient
    },
  ],
]

for (const [name, connect] of clients) {
  describe(name, () => {
    test('calls server-everything through the executable, as its token lets it', async () => {
      const token = await mintToken(sendTo(server), sampleKeys.ada, { policy })
      const client = await connect(endpoint('everything'), token)
      expect((await client.listTools()).tools.map((tool) => tool.name).sort()).toEqual(['echo', 'get-sum'])
      expect(await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 40 } })).toMatchObject({
        content: [{ type: 'text', text: 'The sum of 2 and 40 is 42.' }],
      })
      await expect(client.callTool({ name: 'get-env', arguments: {} })).rejects.toThrow(
        'policy[0].rpcReqMatch.params.name',
      )
      await client.close()
    })

    test('calls a mocked connection, with nothing behind it', async () => {
      const client = await connect(new URL(`${server.url}/connect/northwind/weather-ada/mcp`), sampleKeys.ada)
      expect((await client.listTools()).tools.length).toBe(4)
      expect(await client.callTool({ name: 'get_forecast', arguments: { location: 'Mount Hood, OR' } })).toMatchObject({
        structuredContent: { location: { name: 'Mount Hood, OR' } },
      })
      await client.close()
    })
  })
}

/** Passed and failed checks by scenario. */
async function conformance(url: string, revision: string): Promise<Map<string, string>> {
  using folder = workplace()
  const child = Bun.spawn(
    [
      process.execPath,
      join(packages, 'conformance/dist/index.js'),
      'server',
      '--url',
      url,
      '--suite',
      'all',
      '--spec-version',
      revision,
      '-o',
      folder.folder,
    ],
    { cwd: folder.folder, stdout: 'pipe', stderr: 'ignore' },
  )
  const text = await new Response(child.stdout).text()
  return new Map(
    [...text.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)$/gmu)].map(([, name = '', seen = '']) => [name, seen]),
  )
}

/** A server of the official SDK that speaks 2026-07-28 alone. */
function newestServer() {
  const text = { type: 'text' as const, text: 'This is a simple text response for testing.' }
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'newest', version: '1' }, { capabilities: { tools: {}, logging: {} } })
      server.registerTool('test_simple_text', { description: 'Says a text' }, async () => ({ content: [text] }))
      server.registerTool('test_error_handling', { description: 'Fails' }, async () => ({
        content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
        isError: true,
      }))
      server.registerPrompt('test_simple_prompt', { description: 'Asks' }, () => ({
        messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
      }))
      server.registerResource('text', 'test://static-text', { mimeType: 'text/plain' }, async (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
      }))
      return server
    },
    { legacy: 'reject' },
  )
  return Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: (request) => handler.fetch(request) })
}

/**
 * The scenarios know no credentials: one is added on the way, and its own address becomes the platform's. A view names
 * resources by their connection, which the scenarios do not know either.
 */
function frontOf(at: URL, named: (text: string) => string = (text) => text) {
  const front = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${sampleKeys.ada}`)
      for (const name of ['host', 'origin', 'mcp-name']) {
        const value = headers.get(name)
        if (value !== null) {
          headers.set(name, named(value.replace(`127.0.0.1:${front.port}`, new URL(server.url).host)))
        }
      }
      const body = request.method === 'POST' ? { body: named(await request.text()) } : {}
      const { method, signal } = request
      return fetch(at, { method, headers, ...body, signal, decompress: false })
    },
  })
  return front
}

/** A front of a view with these connections, at which a tool may be called by its own name. */
async function frontOfView(id: string, others: readonly string[]) {
  const connections = [id, ...others].map((connectionId) => ({ connectionId }))
  const answer = await sendTo(server)(`/namespaces/ada/views/${id}-${others.length}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
    body: JSON.stringify({ policy: [{ metadata: connections }], bareNames: true }),
  })
  expect(answer.status).toBe(201)
  const { url } = (await answer.json()) as { url: string }
  return frontOf(new URL(url), (text) => text.replace(/(?<="uri":"|^)test:/u, `postern://${id}/test:`))
}

/** They fail at the endpoint of a namespace: it offers no such method, or knows that there is no such tool. */
const notOffered = ['logging-set-level', 'resources-subscribe', 'resources-unsubscribe']
const toolsThatAreMissing = ['tools-call-simple-text', 'tools-call-error']

/**
 * Every scenario that the server passes straight, it must pass through the executable: at the URL of the connection,
 * and at views of the namespace with this connection alone and with three. Resolves with the scenarios of the first.
 */
async function sameThrough(id: string, url: string, revision: string): Promise<Map<string, string>> {
  using single = frontOf(endpoint(id))
  using alone = await frontOfView(id, [])
  using among = await frontOfView(id, ['weather-cabin', 'calendar-home'])
  const at = ({ port }: typeof single) => conformance(`http://127.0.0.1:${port}/mcp`, revision)
  const [straight, through, ...views] = await Promise.all([
    conformance(url, revision),
    at(single),
    at(alone),
    at(among),
  ])
  const passed = [...straight].filter(([, seen]) => seen.endsWith(' 0 failed'))
  expect(passed.length).toBeGreaterThan(9)
  for (const [name, seen] of passed) expect({ name, seen: through.get(name) }).toEqual({ name, seen })
  const excused = new Set([...notOffered, ...(revision === '2025-11-25' ? toolsThatAreMissing : [])])
  for (const view of views) {
    const failed = passed.filter(([name]) => !excused.has(name) && view.get(name)?.endsWith(' 0 failed') !== true)
    expect(failed).toEqual([])
    // A server that speaks the revision fails no more checks of it at a view.
    expect(view.get('server-stateless')).toBe(through.get('server-stateless'))
  }
  return through
}

test.concurrent('every scenario of conformance that server-everything passes straight, it passes through the executable', async () => {
  const through = await sameThrough('everything', everything.url, '2025-11-25')
  expect(through.get('dns-rebinding-protection')).toBe('2 passed, 0 failed')
})

test.concurrent('and so does a server of the stateless revision', async () => {
  using newest = newestServer()
  const url = `http://127.0.0.1:${newest.port}/mcp`
  expect(await connectTo('newest', url)).toMatchObject({ status: { state: 'connected' } })
  await sameThrough('newest', url, '2026-07-28')
})
