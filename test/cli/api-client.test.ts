/** What commands make of names, URLs, JSON and answers. */

import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { allConnections, allPages, cleanUrl, openClient, pathSegment } from '../../src/cli/client/api-client.ts'
import { parseJson } from '../../src/cli/json-input.ts'
import { createProgram } from '../../src/cli/program.ts'
import { LintAnswer } from '../../src/model/explain.ts'
import { PinList } from '../../src/model/pins.ts'

describe('a name in a path', () => {
  test('stays one segment', () => {
    for (const name of ['acme/weather', '%2e%2e', 'a/..', '../b']) {
      const { pathname } = new URL(`http://localhost/organizations/acme/members/${pathSegment(name)}`)
      expect(pathname.split('/')).toHaveLength(5)
      expect(decodeURIComponent(pathname.split('/')[4] ?? '')).toBe(name)
    }
  })

  test('is refused where a URL would take it for another path', () => {
    for (const name of ['', '.', '..']) expect(() => pathSegment(name)).toThrow('cannot be a name here')
  })
})

test('the URL of a platform has one spelling', () => {
  for (const given of ['HTTPS://Mcp.Example.com:443/', 'https://mcp.example.com', 'https://mcp.example.com/'])
    expect(cleanUrl(given)).toBe('https://mcp.example.com')
  expect(cleanUrl('http://localhost:8787/base/')).toBe('http://localhost:8787/base')
  for (const given of ['mcp.example.com', 'ftp://x', 'http:', '', 'https://x?y', 'https://x#y', 'https://u:p@x'])
    expect(() => cleanUrl(given)).toThrow(`${given}: `)
})

test('an answer that is not JSON is no success', async () => {
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('<h1>Welcome</h1>') })
  const url = `http://127.0.0.1:${server.port}`
  const client = openClient({ url }, { POSTERN_TOKEN: 'a-key', XDG_CONFIG_HOME: '/nonexistent' })
  await expect(client.request('GET', '/me')).rejects.toThrow(`${url} does not answer as postern does`)
})

test('an answer of a later version may have more fields, in every object', async () => {
  const tool = { name: 'greet', state: 'accepted', hash: 'a', findings: [], since: 1 }
  const answer = { pins: 'warn', tools: [tool], instructions: null, later: {} }
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json(answer) })
  const url = `http://127.0.0.1:${server.port}`
  const client = openClient({ url }, { POSTERN_TOKEN: 'a-key', XDG_CONFIG_HOME: '/nonexistent' })
  const found: unknown = await client.request('GET', '/connect/acme/a/.pins', { reads: PinList })
  expect(found).toEqual(answer)
  const other = Type.Object({ missing: Type.String() }, { additionalProperties: false })
  await expect(client.request('GET', '/me', { reads: other })).rejects.toThrow('does not answer as postern does')
})

test('an error that postern did not write says who may have, and a 404 below a namespace names it', async () => {
  let answer = () => new Response()
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => answer() })
  const url = `http://127.0.0.1:${server.port}`
  const client = openClient({ url }, { POSTERN_TOKEN: 'a-key', XDG_CONFIG_HOME: '/nonexistent' })
  const errorOf = (path: string) =>
    client.request('GET', path).then(
      () => 'none',
      (error: Error) => error.message,
    )
  for (const [status, text] of [
    [502, `${url} answered 502: a proxy is there, and postern behind it does not answer`],
    [405, `${url} does not answer as postern does (status 405): check the URL`],
  ] as const) {
    answer = () => new Response('<h1>No</h1>', { status })
    expect(await errorOf('/me')).toBe(text)
  }
  answer = () => Response.json({ error: 'not_found', message: 'The resource was not found' }, { status: 404 })
  expect(await errorOf('/connect/acme%2Ftools/.tools')).toStartWith(
    'there is no namespace acme/tools, or it does not have what you named',
  )
  expect(await errorOf('/other')).toBe('The resource was not found')
  const named = { POSTERN_TOKEN: 'a-key', POSTERN_NAMESPACE: 'acme', XDG_CONFIG_HOME: '/nonexistent' }
  const request = openClient({ url, namespace: 'acme' }, named).request('GET', '/connect/acme/.tools')
  await expect(request).rejects.toThrow('see `postern namespace list` (POSTERN_NAMESPACE is acme)')
})

test('advice fits the error: a key does not help where the upstream wants a sign-in', async () => {
  const errors: Record<string, object> = {
    '/me': { error: 'unauthorized', message: 'The key is invalid' },
    '/upstream': { error: 'upstream_unauthorized', message: 'It requires authorization' },
    '/servers': { error: 'The key is invalid' },
  }
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) => Response.json(errors[new URL(url).pathname], { status: 401 }),
  })
  const url = `http://127.0.0.1:${server.port}`
  const client = openClient({ url }, { XDG_CONFIG_HOME: '/nonexistent' }, 'a-key')
  const told = (path: string) => client.request('GET', path).catch(({ message }: Error) => message)
  const login = `The key is invalid; run \`postern login ${url}\` with a valid key`
  expect([await told('/me'), await told('/servers')]).toEqual([login, login])
  expect(await told('/upstream')).toBe('It requires authorization')
})

describe('a platform that means harm', () => {
  const opened = (fetch: (request: Request) => Response | Promise<Response>) => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch })
    const url = `http://127.0.0.1:${server.port}`
    const client = (timeoutMs?: number) =>
      openClient({ url }, { POSTERN_TOKEN: 'a-key', XDG_CONFIG_HOME: '/nonexistent' }, undefined, timeoutMs)
    return { url, client, [Symbol.dispose]: () => void server.stop(true) }
  }

  /** The error that ends a command, or 'nothing'. */
  async function failureOf(line: string, url: string, printed: string[]): Promise<string> {
    const { POSTERN_TOKEN: before } = process.env
    process.env['POSTERN_TOKEN'] = 'a-key'
    const stdout = (text: string) => void printed.push(text)
    const program = createProgram({
      terminal: { stdout, stderr() {}, isStdoutClosed: () => false },
      json: false,
      exit() {},
    })
    try {
      return await program
        .parseAsync([...line.split(' '), '--url', url], { from: 'user' })
        .then(() => 'nothing', String)
    } finally {
      if (before === undefined) delete process.env['POSTERN_TOKEN']
      else process.env['POSTERN_TOKEN'] = before
    }
  }

  test('is not believed to have done what its answer does not say', async () => {
    let answer: unknown
    using platform = opened(() => Response.json(answer))
    const lines = [
      ...['whoami', 'org list', 'org get acme', 'org key create acme ci', 'org key list acme', 'token mint'],
      ...[
        'namespace list',
        'server search',
        'server introspect acme/x',
        'server add acme/x http://x',
        'tool list -n a c',
      ],
      ...['tool list', 'connection list -n acme', 'connection add -n acme c http://x', 'tool call -n acme c.t'],
      ...['server rm acme/x', 'org member add acme ada', 'namespace add acme', 'connection get -n acme c'],
    ]
    // Any object says that something is deleted or made, and is printed as it is; the result of a tool may be empty.
    const anythingWillDo = /rm|member add|namespace add|server add|connection get|tool call/
    const printed: string[] = []
    for (const [value, those] of [
      [{}, lines.filter((line) => !anythingWillDo.test(line))],
      [null, lines],
      [[], lines],
      [{ token: 1, key: {}, warnings: 'x', content: 'x', connections: {}, tools: [{}], namespaces: 1 }, ['token mint']],
    ] as const) {
      answer = value
      for (const line of those) {
        expect([line, await failureOf(line, platform.url, printed)]).toEqual([
          line,
          `CommandError: ${platform.url} does not answer as postern does: check the URL`,
        ])
      }
    }
    expect(printed).toEqual([])
  })

  test('has no list without an end', async () => {
    let answer: unknown
    let requests = 0
    using platform = opened(() => {
      requests += 1
      return Response.json(answer)
    })
    answer = { connections: [] }
    expect(await allConnections(platform.client(), 'acme')).toEqual({ connections: [], nextCursor: null })
    expect(requests).toBe(1)
    answer = { connections: [], nextCursor: 'again' }
    await expect(allConnections(platform.client(), 'acme')).rejects.toThrow('does not answer as postern does')
    expect(requests).toBe(3)
    answer = { servers: [], pagination: { totalPages: 1e9 } }
    expect((await allPages(platform.client(), '/servers', ['servers', Type.Object({})], 10)).servers).toEqual([])
    expect(requests).toBe(4)
    answer = {
      ...{ calls: [], entries: [], servers: [], links: [], registry: 'public', stopped: false },
      ...{ nextCursor: 'again', metadata: { nextCursor: 'again' } },
    }
    for (const [line, sent] of [
      ['calls', 2],
      ['audit list', 2],
      ['registry check acme', 4],
    ] as const) {
      requests = 0
      expect([line, await failureOf(line, platform.url, []), requests]).toEqual([
        line,
        `CommandError: ${platform.url} does not answer as postern does: check the URL`,
        sent,
      ])
    }
  })

  test('does not get invisible characters or lines of its own into an error', async () => {
    const message = 'gone\npostern: all is well\u200b\u{e0041}\u001b[2J'
    const shown = 'gone\\u000apostern: all is well\\u{200b}\\u{e0041}\\u001b[2J'
    for (const body of [{ error: 'x', message }, { error: message }]) {
      using platform = opened(() => Response.json(body, { status: 400 }))
      await expect(platform.client().request('GET', '/me')).rejects.toThrow(shown)
    }
    using odd = opened(() => Response.json({ message: 5 }, { status: 400 }))
    await expect(odd.client().request('GET', '/me')).rejects.toThrow('status 400')
    const me = {
      ...{ userId: 'ada', operator: false, organizationId: null, key: { id: 'k', name: null }, token: null },
      ...{ organizations: [], more: false, baseUrl: 'http://localhost', console: true, version: '1' },
    }
    const names = ['acme', 'other']
    using platform = opened(() =>
      Response.json({ ...me, namespaces: names.map((name) => ({ name, leads: true, may: ['read'] })) }),
    )
    await expect(platform.client().namespace()).rejects.toThrow('several namespaces (acme, other)')
    names.push(message)
    await expect(platform.client().namespace()).rejects.toThrow('does not answer as postern does')
  })

  test('may be of a later version, which knows more fields and words', async () => {
    const finding = {
      ...{
        code: 'new-finding',
        severity: 'grave',
        place: 'policy[0]',
        other: null,
        words: 'New',
        examples: [],
        docs: '',
      },
      more: 1,
    }
    const searched = { connections: 0, tools: 0, calls: 0, complete: true, more: {} }
    using platform = opened(() => Response.json({ findings: [finding], searched, more: [] }))
    const { findings } = await platform.client().request('POST', '/tokens/lint', { reads: LintAnswer })
    expect(findings).toMatchObject([finding])
  })

  test('gets nobody to follow a redirect', async () => {
    const seen: string[] = []
    using elsewhere = opened((request) => {
      seen.push(request.url)
      return Response.json({})
    })
    for (const status of [301, 302, 303, 307, 308]) {
      using platform = opened(() => new Response(null, { status, headers: { location: `${elsewhere.url}/steal` } }))
      const sent = platform.client().request('POST', '/tokens', { body: { secret: 'x' } })
      await expect(sent).rejects.toThrow(`${platform.url} redirects to ${elsewhere.url}/steal: name that address`)
    }
    expect(seen).toEqual([])
  })

  test('is not read without end', async () => {
    let sent = 0
    using platform = opened(
      () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              sent += 1
              controller.enqueue(new Uint8Array(2 ** 20).fill(32))
            },
          }),
          { headers: { 'content-type': 'application/json' } },
        ),
    )
    await expect(platform.client().request('GET', '/me')).rejects.toThrow('more than 64 MB')
    expect(sent).toBeLessThan(3 * 64)
  })

  test('is not waited for without end', async () => {
    const { promise } = Promise.withResolvers<Response>()
    using silent = opened(() => promise)
    await expect(silent.client(20).request('GET', '/me')).rejects.toThrow(
      `${silent.url} did not answer in time: repeat the command`,
    )
    await expect(silent.client(20).request('DELETE', '/me')).rejects.toThrow('and may have done what was asked')
    using slow = opened(() => new Response(new ReadableStream({ start: (stream) => stream.enqueue('{') })))
    await expect(slow.client(20).request('GET', '/me')).rejects.toThrow(`${slow.url} did not answer in time`)
  })
})

test('JSON is read as the platform reads it', () => {
  expect(parseJson('{"a": [1, "x"]}', 'x.json')).toEqual({ a: [1, 'x'] })
  for (const text of ['{"a": 1, "a": 2}', '{"a": 9007199254740993}', '{"a": ', ''])
    expect(() => parseJson(text, 'x.json')).toThrow('x.json: ')
})
