/** Requests as bytes, which no client of ours would send. */

import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { receiveBufferBytes } from '../../src/http/listening-sockets.ts'
import { type Server, startServer, unlimited, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { sharedServer } from '../support/shared-server.ts'

describe('on the wire', () => {
  const raw: [what: string, request: string, status: RegExp][] = [
    [
      'two Authorization headers',
      'GET /connect/ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 401/,
    ],
    [
      'two Host headers',
      'GET /connect/ada HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    ['no Host header', 'GET /health HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 4/],
    [
      'a backslash in the target',
      'GET /connect/ada\\x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'backslashes that would lead to a name',
      'GET /connect/x\\..\\ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"not_found"/,
    ],
    [
      'backslashes that would lead to a tool',
      'GET /connect/ada/x\\..\\weather-cabin/.tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'backslashes in a server',
      'GET /servers/x\\..\\lumen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"Server not found"/,
    ],
    [
      'a backslash in a call',
      'POST /connect/ada/a\\b/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"jsonrpc":"2\.0"[^]*-32000/,
    ],
    [
      'an encoded backslash in a call without a credential',
      'POST /connect/ada/a%5Cb/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 401[^]*-32001/,
    ],
    [
      'a backslash in a connection that is to be written',
      'PUT /connect/ada/a\\b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"not_found"/,
    ],
    [
      'a backslash, and dots that would lead away from it',
      'GET /connect/x\\y/../ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'a server, and a Host that no URL can have',
      'GET /servers/northwind%2Fcalendar HTTP/1.1\r\nHost: a b\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 403[^]*\r\n\r\n\{"error":"[^"]*"\}$/,
    ],
    [
      'backslashes without a credential',
      'GET /connect/x\\..\\ada HTTP/1.1\r\nHost: localhost\r\n\r\n',
      /^HTTP\/1\.1 401/,
    ],
    [
      'a backslash, and a Host that no URL can have',
      'GET /connect/x\\y HTTP/1.1\r\nHost: a b\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 403[^]*"forbidden"/,
    ],
    [
      'parameters behind a hash',
      'GET /connect/ada?#limit=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 400/,
    ],
    // The runtime resolves dots as URLs do, before anything of ours sees the path: one path, for routing and deciding.
    [
      'dots in the target',
      'GET /connect/lumen/../ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /"connectionId":"weather-cabin"/,
    ],
    [
      'encoded dots in the target',
      'GET /connect/%2e%2e/lumen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'a fragment in the target',
      'GET /connect/ada#x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    [
      'a body cut short',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"policy":',
      /^(?:HTTP\/1\.1 4|$)/,
    ],
    [
      'a length and chunks',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    [
      'a chunked policy that is broken',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"pol\r\n0\r\n\r\n',
      /^HTTP\/1\.1 400/,
    ],
    [
      'a length beyond all bounds',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n{',
      /^HTTP\/1\.1 413 /,
    ],
    [
      'a length beyond what the operation reads',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n{',
      /^HTTP\/1\.1 400[^]*"invalid_request"/,
    ],
    [
      'chunks beyond what the operation reads',
      `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n${'x'.repeat(0x20000)}\r\n0\r\n\r\n`,
      /^HTTP\/1\.1 400[^]*the body is too large: at most 65536 bytes are read/,
    ],
    [
      'chunks without end',
      `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${`80000\r\n${'x'.repeat(0x80000)}\r\n`.repeat(6)}`,
      /^HTTP\/1\.1 413 /,
    ],
    [
      'a body in chunks of one byte',
      `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(5000)}2\r\n[]\r\n0\r\n\r\n`,
      /^HTTP\/1\.1 400[^]*must be an object/,
    ],
    [
      'a HEAD of a list',
      'HEAD /connect/ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nConnection: close\r\n\r\n',
      /^HTTP\/1\.1 200[^]*\r\n\r\n$/,
    ],
  ]
  test('a base URL of a short name, without a port, routes like any other', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--base-url', 'http://pi'])
    const answer = await exchange(server, 'GET /health HTTP/1.1\r\nHost: pi\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
  })

  test('bad credentials count for their address, backslashes or not', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--failure-rate', '0.05'])
    const guess = (path: string) =>
      exchange(server, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer nope\r\n\r\n`)
    expect(await guess('/connect/x')).toStartWith('HTTP/1.1 401')
    expect(await guess('/connect/a\\b')).toStartWith('HTTP/1.1 429')
  })

  const shared = sharedServer(unlimited)
  for (const [what, request, status] of raw) {
    test(what, async () => {
      const answer = await exchange(shared.server, request.replaceAll('KEY', sampleKeys.ada))
      expect(answer).toMatch(status)
      expect((await fetch(`${shared.server.url}/health`)).status).toBe(200)
    })
  }
})

/** Sends bytes and half-closes; resolves with all that comes back. */
function exchange(server: Server, request: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let answer = ''
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.end(request))
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('error', () => resolve(answer))
  socket.on('close', () => resolve(answer))
  return promise
}

describe('after a request that is refused', () => {
  const heads: [what: string, target: string, header: string, closes: boolean][] = [
    // The runtime would read no further request: a proxy would give the connection to somebody.
    ['CONNECT', 'CONNECT 127.0.0.1:80', 'Accept: */*', true],
    ['CONNECT to a path', 'CONNECT /health', 'Accept: */*', true],
    ['a body in chunks, at a path that does not exist', 'POST /nowhere', 'Transfer-Encoding: chunked', true],
    ['a long body, at a path that does not exist', 'POST /nowhere', 'Content-Length: 200000', true],
    ['a short body, at a path that does not exist', 'POST /nowhere', 'Content-Length: 20', false],
    // It would go on parsing chunks without end.
    ['a body in chunks, without a credential', 'POST /connect/ada/x/mcp', 'Transfer-Encoding: chunked', true],
    ['a long body, without a credential', 'POST /connect/ada/x/mcp', 'Content-Length: 200000', false],
  ]
  for (const [what, target, header, closes] of heads) {
    test(`${what}: ${closes ? 'the connection is closed' : 'the connection stays'}`, async () => {
      using place = workplace()
      await using server = await startServer(place)
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
      let received = ''
      const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => resolve()))
      const answered = new Promise<void>((resolve) =>
        socket.on('data', (bytes) => {
          received += bytes.toString()
          resolve()
        }),
      )
      socket.write(`${target} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`)
      await answered
      expect(received).toMatch(/^HTTP\/1\.1 4/)
      expect(/connection: close/i.test(received)).toBe(closes)
      if (closes) await closed
      socket.destroy()
    })
  }
})

test('nobody loses a part of a long answer behind chunks', async () => {
  using place = workplace()
  await using server = await startServer(place)
  const get = (end: string) =>
    exchange(server, `GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${end}`)
  for (const end of ['', '0\r\n\r\n']) expect(await get(end)).toMatch(/^HTTP\/1\.1 400.*omit Transfer-Encoding"\}$/s)
})

test('the system receives a bounded part of a connection ahead of the server (needs ss)', async () => {
  using place = workplace()
  await using server = await startServer(place, ['--metrics-listen', '127.0.0.1:0'])
  const [, metrics = ''] = /"metrics listening","url":"([^"]+)"/.exec(server.stderr()) ?? []
  for (const url of [server.url, metrics]) {
    const { stdout } = Bun.spawnSync(['ss', '-tlnmH', 'sport', '=', new URL(url).port])
    // It doubles the bytes that are asked for.
    expect(stdout.toString()).toContain(`rb${2 * receiveBufferBytes},`)
  }
})

test('chunks that nobody reads end their connection at the metrics, too', async () => {
  using place = workplace()
  await using server = await startServer(place, ['--metrics-listen', '127.0.0.1:0'])
  const [, url = ''] = /"metrics listening","url":"([^"]+)"/.exec(server.stderr()) ?? []
  for (const path of ['/metrics', '/nothing'])
    expect(
      await exchange(
        { ...server, url },
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`,
      ),
    ).toMatch(/connection: close/i)
})
