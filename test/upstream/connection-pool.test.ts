/** What is read of an answer on the wire, and when a socket serves again. The server is a script. */

import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from 'bun:test'
import { upstreamHeadBytesMax } from '../../src/limits.ts'
import { type ConnectionPool, createConnectionPool, pendingConnectsMax } from '../../src/upstream/connection-pool.ts'
import type { OutgoingRequest } from '../../src/upstream/head.ts'
import type { Endpoint } from '../../src/upstream/http-connection.ts'
import { upstreamHeadersMax } from '../../src/upstream/response-parser.ts'
import { unhurried } from '../support/pace.ts'
import { random } from '../support/random.ts'
import { until } from '../support/until.ts'

/** What the server does with each request that has arrived whole, by turns. */
type Script = (socket: Bun.Socket<{ seen: string }>, request: string) => void
let script: Script = () => {}
let connections = 0
let requests: string[] = []
/** At the first bytes of a request. */
let answersEarly = false
let onClose: (socket: unknown) => unknown = () => {}
let server: Bun.TCPSocketListener<{ seen: string }>
let sockets: ConnectionPool

beforeAll(() => {
  server = Bun.listen<{ seen: string }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      close: (socket) => void onClose(socket),
      open(socket) {
        connections += 1
        socket.data = { seen: '' }
      },
      data(socket, chunk) {
        socket.data.seen += chunk.toString('latin1')
        const { seen } = socket.data
        const head = seen.indexOf('\r\n\r\n')
        const length = Number(/content-length: (\d+)/.exec(seen)?.[1] ?? 0)
        const isWhole = head >= 0 && seen.length >= head + 4 + length
        if (!isWhole && !(answersEarly && requests.length === 0)) return
        socket.data.seen = ''
        requests.push(seen)
        script(socket, seen)
      },
    },
  })
})
afterAll(() => server.stop(true))
beforeEach(() => {
  connections = 0
  requests = []
})

const post: OutgoingRequest = {
  method: 'POST',
  path: '/mcp?x=1',
  host: 'tools.lan',
  headers: {},
  via: '1.1 us',
  body: '{}',
}

interface Got {
  status?: number
  headers?: Record<string, string>
  body: string
  error?: string
}

/** All that was told of an exchange, once it is over. */
function exchange(request: OutgoingRequest = post): Promise<Got> {
  const { promise, resolve } = Promise.withResolvers<Got>()
  const got: Got = { body: '' }
  sockets.send(request, {
    ...unhurried,
    onHead: (status, headers) => Object.assign(got, { status, headers: { ...headers } }),
    onData: (chunk) => {
      got.body += chunk.toString('latin1')
    },
    onEnd: () => resolve(got),
    onError: (error) => resolve({ ...got, error: error.message }),
  })
  return promise
}

const plain = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello'
const chunked =
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nafter: all\r\n\r\n'

const openSockets = (to: Partial<Endpoint> = {}) =>
  createConnectionPool({ address: '127.0.0.1', port: server.port, certified: undefined, ...to })
beforeEach(() => {
  sockets?.close()
  sockets = openSockets()
})

test('a request is written as it must be', async () => {
  script = (socket) => socket.write(plain)
  await exchange({ ...post, headers: { 'x-name': 'é', 'accept-encoding': 'gzip', via: 'another' } })
  await exchange({ ...post, method: 'GET', path: '/', body: undefined })
  expect(requests).toEqual([
    'POST /mcp?x=1 HTTP/1.1\r\nhost: tools.lan\r\naccept-encoding: identity\r\nx-name: é\r\nvia: 1.1 us\r\ncontent-length: 2\r\n\r\n{}',
    'GET / HTTP/1.1\r\nhost: tools.lan\r\naccept-encoding: identity\r\nvia: 1.1 us\r\n\r\n',
  ])
})

describe('nothing is sent of a header that', () => {
  const wrong: [string, string, string][] = [
    ['breaks its line', 'x', 'a\r\nhost: b'],
    ['has a NUL', 'x', 'a\0b'],
    ['has what is not Latin-1', 'x', '☃'],
    ['has a name with a space', 'x y', 'a'],
    ['has no name', '', 'a'],
  ]
  for (const [what, name, value] of wrong) {
    test(what, () => {
      expect(() => sockets.send({ ...post, headers: { [name]: value } }, {} as never)).toThrow(TypeError)
      expect(connections).toBe(0)
    })
  }
})

test('an answer is the same wherever it was cut', async () => {
  const chance = random(7)
  for (const answer of [plain, chunked, `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${plain}`]) {
    for (let cut = 1; cut < answer.length; cut += 1) {
      script = (socket) => {
        socket.write(answer.slice(0, cut))
        socket.flush()
        setImmediate(() => socket.write(answer.slice(cut)))
      }
      const got = await exchange()
      expect({ cut, status: got.status, body: got.body, error: got.error }).toEqual({
        cut,
        status: 200,
        body: 'hello',
        error: undefined,
      })
      if (chance.int(10) === 0) sockets.close()
      sockets = openSockets()
    }
  }
})

test('an answer without a length ends with its connection', async () => {
  script = (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\nhello')
    socket.end()
  }
  expect(await exchange()).toEqual({ status: 200, headers: {}, body: 'hello' })
})

test('a head of more headers than any server has is not read on', async () => {
  const many = Array.from({ length: 2 * upstreamHeadersMax }, (_, i) => `x-${i}: ${i}\r\n`).join('')
  script = (socket) => socket.write(`HTTP/1.1 200 OK\r\n${many}`)
  expect((await exchange()).error).toBeDefined()
})

test('headers that come several times are joined, many are all there, and none is more than a name', async () => {
  const many = Array.from({ length: 150 }, (_, i) => `x-${i}: ${i}\r\n`).join('')
  script = (socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\n__proto__: x\r\n${many}content-length: 0\r\n\r\n`)
  const { headers = {} } = await exchange()
  expect(headers['a']).toBe('1, 2')
  expect(headers['x-149']).toBe('149')
  expect(Object.keys(headers)).toHaveLength(153)
  // Those of the next answer are its own.
  script = (socket) => socket.write(plain)
  expect((await exchange()).headers).toEqual({ 'content-type': 'text/plain', 'content-length': '5' })
  expect(connections).toBe(1)
})

test('a head may be as long as it is allowed to be', async () => {
  script = (socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(upstreamHeadBytesMax - 200)}\r\ncontent-length: 0\r\n\r\n`)
  expect((await exchange()).status).toBe(200)
})

test('a head that has not ended may have so many bytes, and not one more', async () => {
  const begin = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: '
  const unfinished = (length: number) => begin + 'y'.repeat(length - begin.length)
  script = (socket) => {
    socket.write(unfinished(upstreamHeadBytesMax))
    socket.flush()
    setTimeout(() => socket.write('\r\n\r\n'), 5)
  }
  expect((await exchange()).status).toBe(200)
  script = (socket) => socket.write(unfinished(upstreamHeadBytesMax + 1))
  expect((await exchange()).error).toBe('its head is too long')
})

test('the heads of a socket’s answers are measured one by one', async () => {
  const head = `HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ${'y'.repeat(upstreamHeadBytesMax * 0.75)}`
  script = (socket) => {
    socket.write(head)
    socket.flush()
    setTimeout(() => socket.write('\r\n\r\n'), 5)
  }
  for (let i = 0; i < 3; i += 1) expect((await exchange()).status).toBe(200)
  expect(connections).toBe(1)
})

describe('an answer is refused', () => {
  const wrong: [string, string][] = [
    [
      'with a chunk of a negative size',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n',
    ],
    ['with a chunk of no size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n'],
    ['with a chunk longer than said', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n'],
    ['with a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello'],
    ['with a length in other figures', 'HTTP/1.1 200 OK\r\ncontent-length: 0x5\r\n\r\nhello'],
    ['with two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!'],
    ['with a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['with a space before a colon', 'HTTP/1.1 200 OK\r\ncontent-length : 5\r\n\r\nhello'],
    ['with a header that has no colon', 'HTTP/1.1 200 OK\r\nhello\r\n\r\n'],
    ['with a NUL in a header', 'HTTP/1.1 200 OK\r\na: b\0c\r\ncontent-length: 0\r\n\r\n'],
    ['with a status of two figures', 'HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n'],
    ['that switches to another without its name', 'HTTP/1.1 101 Go\r\n\r\n'],
    ['that wants another protocol', 'HTTP/1.1 101 Go\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
    ['that is of HTTP/2', 'HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['with a head without end', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}`],
    ['with a head that is too long', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(33_000)}\r\ncontent-length: 0\r\n\r\n`],
    ['with no end of what comes before', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(4000)],
  ]
  for (const [what, answer] of wrong) {
    test(what, async () => {
      script = (socket) => socket.write(answer)
      expect((await exchange()).error).toBeString()
    })
  }
})

describe('a socket', () => {
  test('serves one exchange after the other, and two at once have their own', async () => {
    script = (socket) => socket.write(plain)
    for (let i = 0; i < 5; i += 1) await exchange()
    expect(connections).toBe(1)
    await Promise.all([exchange(), exchange()])
    expect(connections).toBe(2)
  })

  const notKept: [string, string][] = [
    ['that says it will close', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['that keeps it for a second', 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n'],
    ['followed by more', `${plain}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`],
    ['followed by the beginning of more', `${plain}H`],
    ['followed by what is no HTTP', `${plain}\0`],
    ['followed by itself', `${plain}hello`],
    ['in chunks, followed by more', `${chunked}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`],
    ['in chunks, followed by a head', `${chunked}HTTP/1.1 103 Early Hints\r\n\r\n`],
    ['in chunks, followed by the beginning of a head', `${chunked}HTTP/1.1 200 OK\r\n`],
    ['in chunks, followed by the beginning of more', `${chunked}H`],
    ['in chunks, followed by what is no HTTP', `${chunked}\0`],
  ]
  for (const [what, answer] of notKept) {
    test(`is not kept after an answer ${what}`, async () => {
      script = (socket) => socket.write(connections === 1 ? answer : plain)
      const { status, error } = await exchange()
      expect([status, error]).toEqual([200, undefined])
      expect((await exchange()).body).toBe('hello')
      expect(connections).toBe(2)
    })
  }

  const kept: [string, string][] = [
    ['of no content', 'HTTP/1.1 204 No Content\r\n\r\n'],
    [
      'that was not modified, with the length that it would have',
      'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n',
    ],
    ['in chunks, with trailers', chunked],
    ['after informational ones', `${'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(3)}${plain}`],
    ['that says how long it is kept', 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: 0\r\n\r\n'],
  ]
  for (const [what, answer] of kept) {
    test(`is kept after an answer ${what}`, async () => {
      script = (socket) => socket.write(requests.length === 1 ? answer : plain)
      expect((await exchange()).error).toBeUndefined()
      expect((await exchange()).body).toBe('hello')
      expect(connections).toBe(1)
    })
  }

  test('that says something unasked is closed', async () => {
    // The pool closes what is unused too, by this clock.
    jest.useFakeTimers()
    const closed = Promise.withResolvers<void>()
    let served: Bun.Socket<{ seen: string }> | undefined
    script = (socket) => {
      served = socket
      onClose = (one) => one === socket && closed.resolve()
      socket.write(plain)
    }
    await exchange()
    served?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
    await closed.promise
    jest.useRealTimers()
  })

  test('that answers before it has the whole request does not serve again', async () => {
    answersEarly = true
    script = (socket) => socket.write(plain)
    expect((await exchange({ ...post, body: Buffer.alloc(32 * 2 ** 20, 'x') })).body).toBe('hello')
    answersEarly = false
    expect((await exchange()).body).toBe('hello')
    expect(connections).toBe(2)
  })

  test('that was broken off does not serve again', async () => {
    script = (socket) => socket.write(connections === 1 ? plain.slice(0, -2) : plain)
    const begun = Promise.withResolvers<void>()
    const told: string[] = []
    const breakOff = sockets.send(post, {
      ...unhurried,
      onHead: () => {},
      onData: () => begun.resolve(),
      onEnd: () => told.push('end'),
      onError: () => told.push('error'),
    })
    await begun.promise
    breakOff()
    expect((await exchange()).body).toBe('hello')
    expect([connections, told]).toEqual([2, []])
  })

  test('takes a body that is larger than its buffer', async () => {
    script = (socket, request) => {
      const length = String(request.length)
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${length.length}\r\n\r\n${length}`)
    }
    const body = Buffer.alloc(8 * 2 ** 20, 'x')
    expect(Number((await exchange({ ...post, body })).body)).toBeGreaterThan(body.length)
  })

  test('with TLS is closed when it is broken off before anybody was certified', async () => {
    const arrived = Promise.withResolvers<string>()
    const closed = Promise.withResolvers<void>()
    using silent = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      // A greeting, and nobody answers it.
      socket: { data: (_, hello) => arrived.resolve(hello.toString('latin1')), close: () => closed.resolve() },
    })
    sockets = openSockets({ port: silent.port, certified: 'tools.lan' })
    const breakOff = sockets.send(post, {
      ...unhurried,
      onHead() {},
      onData() {},
      onEnd() {},
      onError() {},
    })
    // Servers of many names choose their certificate by it.
    expect(await arrived.promise).toContain('tools.lan')
    breakOff()
    await closed.promise
  })

  test('is not opened while too many are not connected yet', async () => {
    using silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    sockets = openSockets({ port: silent.port, certified: 'tools.lan' })
    const send = () => sockets.send(post, { ...unhurried, onHead() {}, onData() {}, onEnd() {}, onError() {} })
    const all = Array.from({ length: pendingConnectsMax }, send)
    expect(send).toThrow('too long')
    for (const breakOff of all) breakOff()
    // The last of them is given up some time after it was broken off.
    const isFree = () => {
      try {
        send()()
        return true
      } catch {
        return false
      }
    }
    await until(isFree)
  })

  test('that nobody answers at tells so', async () => {
    sockets = openSockets({ port: 1 })
    expect((await exchange()).error).toBeString()
  })
})
