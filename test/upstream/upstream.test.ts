/** Where requests to MCP servers may go, and what they make of servers that behave badly. A real server counts. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { PlatformError } from '../../src/errors.ts'
import { createAddresses, readAllowedUpstream } from '../../src/upstream/addresses.ts'
import { createUpstream } from '../../src/upstream/pooled-upstream.ts'
import { toResponse, UpstreamError } from '../../src/upstream/upstream.ts'
import { until } from '../support/until.ts'

const holder = { keyId: 'key', family: 'key' }

let hits = 0
let target: Bun.Server<undefined>
/** What the raw server says to whoever connects. */
let raw: Server
let rawSays: string[] = []
let rawPort = 0
/** Requests that were given up by us. */
let abandoned = 0

beforeAll(async () => {
  target = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch(request) {
      hits += 1
      if (request.url.endsWith('/silent')) return new Promise<Response>(() => {})
      if (!request.url.endsWith('/held')) return Response.json({ ok: true })
      request.signal.addEventListener('abort', () => {
        abandoned += 1
      })
      const held = new ReadableStream({
        async start(controller) {
          controller.enqueue(': held\n\n')
          await new Promise(() => {})
        },
      })
      return new Response(held, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  raw = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      for (const part of rawSays) socket.write(part)
      socket.end()
    })
  })
  await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve))
  const address = raw.address()
  rawPort = typeof address === 'object' && address !== null ? address.port : 0
})
afterAll(async () => {
  raw.close()
  await target.stop(true)
})
beforeEach(() => {
  hits = 0
  abandoned = 0
})

interface World {
  readonly allow?: readonly string[]
  readonly isPublicAllowed?: boolean
  readonly resolve?: (host: string) => Promise<readonly string[]>
  readonly ours?: number | undefined
}
const asking = { holder: { keyId: 'key', family: 'key' }, timeoutMs: 60_000 }
const nobody = () => Promise.reject(new Error('there is no such name'))
function upstreamIn({ allow = [], isPublicAllowed = true, resolve = nobody, ours }: World) {
  const addresses = createAddresses({
    allowed: allow.flatMap((text) => readAllowedUpstream(text) ?? []),
    isPublicAllowed,
    isSelf: (_, port) => port === ours,
    resolve,
  })
  return createUpstream(addresses)
}
/** The status of the answer, or the kind of the error. */
async function ask(world: World, url: string): Promise<number | string> {
  try {
    const answer = await upstreamIn(world).send({ holder, url, headers: {}, body: '{}', timeoutMs: 60_000 })
    await toResponse(answer).body?.cancel()
    return answer.status
  } catch (error) {
    if (error instanceof UpstreamError) return error.kind
    throw error
  }
}

describe('addresses', () => {
  const spellings = [
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '127.1',
    '017700000001',
    '127.0.0.1.',
    'localhost',
    'LOCALHOST',
    'localhost.',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '１２７.０.０.１',
    '①②⑦.0.0.1',
    '0.0.0.0',
    '0',
    '[::]',
    'rebound.example.com',
  ]
  for (const host of spellings) {
    test(`of this machine, written ${host}, are refused unless they are named`, async () => {
      const resolve = async () => ['127.0.0.1']
      expect(await ask({ resolve }, `http://${host}:${target.port}/`)).toBe('refused')
      expect(hits).toBe(0)
    })
  }

  test('that no connection may point to are never reached, however they are wrapped and whatever is allowed', async () => {
    for (const host of [
      '169.254.169.254',
      '168.63.129.16',
      '[fd00:ec2::23]',
      '[fd20:ce::254]',
      '[::169.254.169.254]',
    ]) {
      expect({ host, got: await ask({ allow: ['0.0.0.0/0', '::/0'] }, `http://${host}/`) }).toEqual({
        host,
        got: 'refused',
      })
    }
    for (const host of ['[64:ff9b::a9fe:a9fe]', '[2002:a9fe:a9fe::1]']) {
      expect({ host, got: await ask({ allow: ['::/0'] }, `http://${host}/`) }).toEqual({ host, got: 'refused' })
    }
  })

  test('of IPv6 are public below 2000::/3 alone', async () => {
    for (const host of ['[::127.0.0.1]', '[fe00::1]', '[200::1]', '[1::1]', '[4000::1]', '[fec0::1]', '[5f00::1]']) {
      expect({ host, got: await ask({}, `http://${host}/`) }).toEqual({ host, got: 'refused' })
    }
  })

  const never = [
    '169.254.169.254',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '192.0.0.192',
    '169.254.1.1',
    '[fe80::1]',
    '224.0.0.1',
    '0.0.0.0',
    '[::ffff:169.254.169.254]',
  ]
  for (const host of never) {
    test(`${host} is reached by nobody, whatever is allowed`, async () => {
      expect(await ask({ allow: ['0.0.0.0/0', '::/0'] }, `http://${host}/latest/meta-data`)).toBe('refused')
    })
  }

  test('that are named are reached: a host, a host with its port, a range', async () => {
    const url = `http://127.0.0.1:${target.port}/`
    const named = `http://tools.lan:${target.port}/`
    const resolve = async () => ['127.0.0.1']
    for (const allow of ['127.0.0.1', `127.0.0.1:${target.port}`, '127.0.0.0/8', `127.0.0.0/8:${target.port}`]) {
      expect({ allow, got: await ask({ allow: [allow], isPublicAllowed: false }, url) }).toEqual({ allow, got: 200 })
    }
    expect(await ask({ allow: ['tools.lan'], resolve }, named)).toBe(200)
    for (const allow of ['127.0.0.1:1', '10.0.0.0/8', 'other.lan', 'tools.lan:1']) {
      expect({ allow, got: await ask({ allow: [allow], resolve }, named) }).toEqual({ allow, got: 'refused' })
    }
    // Public addresses are closed too, where only the named ones count.
    expect(await ask({ isPublicAllowed: false }, 'http://93.184.216.34/')).toBe('refused')
  })

  test('of the platform itself are refused, named or not', async () => {
    const { port } = target
    expect(await ask({ allow: ['127.0.0.1'], ours: port }, `http://127.0.0.1:${port}/`)).toBe('refused')
    expect(hits).toBe(0)
  })

  test('a name with one good and one bad address is refused, and one that changes its mind is looked at again', async () => {
    expect(
      await ask({ resolve: async () => ['93.184.216.34', '127.0.0.1'] }, `http://both.example.com:${target.port}/`),
    ).toBe('refused')
    let asked = 0
    const turning = async () => {
      asked += 1
      return [asked === 1 ? '192.0.2.1' : '127.0.0.1']
    }
    // A documentation address is no public one, so it is named here; loopback is not.
    const addresses = createAddresses({
      allowed: [readAllowedUpstream('192.0.2.0/24')].flatMap((one) => one ?? []),
      isPublicAllowed: true,
      isSelf: () => false,
      resolve: turning,
    })
    const url = new URL(`http://turning.example.com:${target.port}/`)
    expect(await addresses(url, asking)).toMatchObject({
      host: 'turning.example.com',
      address: '192.0.2.1',
    })
    // Within seconds the answer is the address that was looked at, never one that was not.
    expect(await addresses(url, asking)).toMatchObject({
      host: 'turning.example.com',
      address: '192.0.2.1',
    })
    const other = new URL(`http://turning.example.com:${(target.port ?? 0) + 1}/`)
    expect(await addresses(other, asking)).toMatchObject({ address: '192.0.2.1' })
    expect([hits, asked]).toEqual([0, 1])
  })

  test('a name that does not resolve is down, and no other scheme is spoken', async () => {
    expect(await ask({}, 'http://nowhere.invalid/')).toBe('down')
  })
})

test('a request that waited for its connection, or for a name, is sent if it still may be', async () => {
  const url = `http://127.0.0.1:${target.port}/`
  const { send } = upstreamIn({ allow: ['127.0.0.1'] })
  const refused = new PlatformError('unauthorized', 'the token was revoked meanwhile')
  const ask = (requireAccess: () => Promise<void> | undefined) => send({ ...asking, url, headers: {}, requireAccess })
  await expect(ask(() => Promise.reject(refused))).rejects.toBe(refused)
  expect(hits).toBe(0)
  expect((await ask(() => Promise.resolve())).status).toBe(200)
  // Over the connection that is open.
  await expect(ask(() => Promise.reject(refused))).rejects.toBe(refused)
  expect((await ask(() => undefined)).status).toBe(200)
  expect((await ask(() => Promise.resolve())).status).toBe(200)
  expect(hits).toBe(3)
})

describe('a server', () => {
  const allow = { allow: ['127.0.0.1'] }
  const rawUrl = () => `http://127.0.0.1:${rawPort}/`
  const json = 'content-type: application/json\r\n'
  const behaviours: [what: string, says: string[], got: number | string][] = [
    ['answers', [`HTTP/1.1 200 OK\r\n${json}content-length: 2\r\n\r\n{}`], 200],
    ['has nothing to say', ['HTTP/1.1 204 No Content\r\n\r\n'], 204],
    [
      'says something first',
      ['HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n', `HTTP/1.1 200 OK\r\n${json}content-length: 2\r\n\r\n{}`],
      200,
    ],
    ['breaks off in its head', ['HTTP/1.1 200 OK\r\ncontent-'], 'down'],
    ['says nothing', [], 'down'],
    ['lies about its length: less comes', [`HTTP/1.1 200 OK\r\n${json}content-length: 100\r\n\r\n{}`], 'down'],
    ['breaks off a chunk', [`HTTP/1.1 200 OK\r\n${json}transfer-encoding: chunked\r\n\r\n5\r\n{}`], 'down'],
    ['gives two lengths', [`HTTP/1.1 200 OK\r\n${json}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`], 'down'],
    [
      'gives a length and chunks',
      [`HTTP/1.1 200 OK\r\n${json}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
      'down',
    ],
    ['has a status of its own', [`HTTP/1.1 999 Odd\r\n${json}content-length: 2\r\n\r\n{}`], 'down'],
    ['speaks another protocol', ['SSH-2.0-OpenSSH_9.9\r\n'], 'down'],
    ['has an endless head', [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(200_000)}\r\n\r\n`], 'down'],
    [
      'redirects',
      ['HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n'],
      307,
    ],
  ]
  for (const [what, says, got] of behaviours) {
    test(`that ${what}`, async () => {
      rawSays = says
      expect(await ask(allow, rawUrl())).toBe(got)
    })
  }

  test('that sends bytes which are no text has sent no body', async () => {
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) => new Response(Buffer.from([0x7b, url.endsWith('/text') ? 0x7d : 0xff, 0x7d])),
    })
    const bodyOf = async (path: string) => {
      const url = `http://127.0.0.1:${server.port}/${path}`
      return (await upstreamIn(allow).send({ holder, url, headers: {}, timeoutMs: 60_000 })).body
    }
    expect(await bodyOf('text')).toHaveLength(3)
    expect(await bodyOf('other')).toBeUndefined()
  })

  test('that redirects is not followed, wherever to', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      rawSays = [`HTTP/1.1 ${status} Moved\r\nlocation: http://127.0.0.1:${target.port}/\r\ncontent-length: 0\r\n\r\n`]
      expect(await ask(allow, rawUrl())).toBe(status)
    }
    expect(hits).toBe(0)
  })

  test('that sends a bomb is not unpacked, and what it sends is not kept', async () => {
    const bomb = Bun.gzipSync(Buffer.alloc(200 * 2 ** 20))
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => new Response(bomb, { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } }),
    })
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    const response = await upstreamIn(allow).send({
      holder,
      url: `http://127.0.0.1:${server.port}/`,
      headers: {},
      timeoutMs: 60_000,
    })
    expect([response.headers['content-encoding'], response.body]).toEqual(['gzip', undefined])
    expect((process.memoryUsage.rss() - before) / 2 ** 20).toBeLessThan(20)
  })

  test('is let go when whoever asked has gone, before its answer and in the middle of it', async () => {
    const upstream = upstreamIn(allow)
    const gone = new AbortController()
    const response = await upstream.send({
      holder,
      url: `http://127.0.0.1:${target.port}/held`,
      headers: {},
      body: '{}',
      timeoutMs: 60_000,
      signal: () => gone.signal,
    })
    const reader = toResponse(response).body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(': held\n\n')
    gone.abort()
    await expect(reader?.read() as Promise<unknown>).rejects.toThrow('the client disconnected')
    const early = upstream.send({
      holder,
      url: `http://127.0.0.1:${target.port}/silent`,
      headers: {},
      timeoutMs: 60_000,
      signal: () => AbortSignal.abort(),
    })
    await expect(early).rejects.toThrow('the client disconnected')
    await until(() => abandoned > 0)
    expect(abandoned).toBe(1)
  })

  test('is told who we are, whatever a connection has among its headers', async () => {
    const told: (string | null)[] = []
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        told.push(request.headers.get('via'))
        return Response.json({})
      },
    })
    const request = {
      holder,
      url: `http://127.0.0.1:${server.port}/`,
      headers: { via: '1.1 hidden' },
      timeoutMs: 60_000,
    }
    await upstreamIn(allow).send(request)
    await upstreamIn(allow).send({ ...request, via: '1.1 proxy' })
    expect(told).toEqual(['1.1 postern', '1.1 proxy, 1.1 postern'])
  })

  test('that streams faster than anybody reads is let go', async () => {
    using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      fetch: () =>
        new Response(
          new ReadableStream({
            pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)),
          }),
          { headers: { 'content-type': 'text/event-stream' } },
        ),
    })
    const url = `http://127.0.0.1:${server.port}/`
    const { body } = toResponse(await upstreamIn(allow).send({ holder, url, headers: {}, timeoutMs: 60_000 }))
    const reader = body?.getReader()
    await reader?.read()
    let error: unknown
    while (error === undefined) {
      const moment = new Promise<undefined>((done) => setImmediate(() => done(undefined)))
      error = await Promise.race([reader?.closed.catch((thrown: unknown) => thrown), moment])
    }
    expect(String(error)).toContain('ahead of the client')
  })

  test('may hold more streams than the runtime’s own fetch would let be', async () => {
    const upstream = upstreamIn(allow)
    const request = { holder, url: `http://127.0.0.1:${target.port}/held`, headers: {}, body: '{}', timeoutMs: 60_000 }
    const all = await Promise.all(Array.from({ length: 400 }, () => upstream.send(request)))
    expect(all.every(({ status }) => status === 200)).toBe(true)
    await Promise.all(all.map((answer) => toResponse(answer).body?.cancel()))
  })
})
