/** What commands make of names, URLs, JSON and answers. */

import { describe, expect, test } from 'bun:test'
import { cleanUrl, openClient, pathSegment } from '../../src/cli/client/api-client.ts'
import { parseJson } from '../../src/cli/json-input.ts'

describe('a name in a path', () => {
  test('stays one segment', () => {
    for (const name of ['acme/weather', '%2e%2e', 'a/..', '../b']) {
      const { pathname } = new URL(`http://localhost/organizations/acme/members/${pathSegment(name)}`)
      expect(pathname.split('/')).toHaveLength(5)
      expect(decodeURIComponent(pathname.split('/')[4] ?? '')).toBe(name)
    }
  })

  test('is refused where a URL would take it for another path', () => {
    for (const name of ['', '.', '..']) expect(() => pathSegment(name)).toThrow('is not a valid name')
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

test('advice fits the error: a key does not help where the upstream wants a sign-in', async () => {
  const errors: Record<string, object> = {
    '/me': { error: 'unauthorized', message: 'The key is invalid' },
    '/upstream': { error: 'upstream_unauthorized', message: 'It requires authorization' },
    '/setup': { error: 'upstream_unauthorized', message: 'It requires authorization', setupUrl: 'http://x/setup' },
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
  expect(await told('/setup')).toBe('It requires authorization: open http://x/setup')
})

describe('a platform that means harm', () => {
  const opened = (fetch: (request: Request) => Response | Promise<Response>) => {
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch })
    const url = `http://127.0.0.1:${server.port}`
    const client = (timeoutMs?: number) =>
      openClient({ url }, { POSTERN_TOKEN: 'a-key', XDG_CONFIG_HOME: '/nonexistent' }, undefined, timeoutMs)
    return { url, client, [Symbol.dispose]: () => void server.stop(true) }
  }

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
    await expect(silent.client(20).request('GET', '/me')).rejects.toThrow(`${silent.url} did not answer in time`)
    using slow = opened(() => new Response(new ReadableStream({ start: (stream) => stream.enqueue('{') })))
    await expect(slow.client(20).request('GET', '/me')).rejects.toThrow(`${slow.url} did not answer in time`)
  })
})

test('JSON is read as the platform reads it', () => {
  expect(parseJson('{"a": [1, "x"]}', 'x.json')).toEqual({ a: [1, 'x'] })
  for (const text of ['{"a": 1, "a": 2}', '{"a": 9007199254740993}', '{"a": ', ''])
    expect(() => parseJson(text, 'x.json')).toThrow('x.json: ')
})
