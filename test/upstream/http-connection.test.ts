/** What a wire tells its pool, and its receiver, whatever becomes of it. The server is a script. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { socketIdleMs } from '../../src/limits.ts'
import type { HttpConnection } from '../../src/upstream/http-connection.ts'
import { openConnection } from '../../src/upstream/open-connection.ts'
import { unhurried } from '../support/pace.ts'
import { until } from '../support/until.ts'

let script: (socket: Bun.Socket, request: string) => unknown = () => {}
let closes = 0
let server: Bun.TCPSocketListener<undefined>

beforeAll(() => {
  server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: (socket, chunk) => void script(socket, chunk.toString('latin1')),
      close() {
        closes += 1
      },
    },
  })
})
afterAll(() => server.stop(true))
beforeEach(() => {
  closes = 0
})

const request = Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

function wire({ port = server.port, certified = undefined as string | undefined, keeps = true } = {}) {
  const told: string[] = []
  const opened: HttpConnection = openConnection(
    { address: '127.0.0.1', port, certified },
    {
      connected: () => void told.push('connected'),
      leave: (one) => void (told.at(-1) !== 'left' && told.push(one === opened ? 'left' : 'another left')),
      keep(one, ms) {
        told.push(one === opened ? `kept ${ms}` : 'another kept')
        return keeps
      },
    },
  )
  const start = () =>
    opened.start(request, {
      ...unhurried,
      onHead: (status) => void told.push(String(status)),
      onData: (chunk) => void told.push(chunk.toString()),
      onEnd: () => void told.push('end'),
      onError: (error) => void told.push(`error: ${error.message}`),
    })
  const has = (what: string, times = 1) => until(() => told.filter((one) => one === what).length === times)
  return { opened, told, start, has }
}

test('a wire is connected once, kept after each exchange, and left when its server closes it', async () => {
  let peer: Bun.Socket | undefined
  script = (socket) => {
    peer = socket
    socket.write(answer)
  }
  const { told, start, has } = wire()
  start()
  await has('end')
  start()
  await has('end', 2)
  peer?.end()
  await has('left')
  const exchange = ['200', 'ok', `kept ${socketIdleMs}`, 'end']
  expect(told).toEqual(['connected', ...exchange, ...exchange, 'left'])
})

test('the time that it is kept is what each answer says', async () => {
  const hints = ['keep-alive: timeout=3\r\n', '', 'keep-alive: timeout=2\r\n']
  script = (socket) => socket.write(`HTTP/1.1 200 OK\r\n${hints.shift()}content-length: 2\r\n\r\nok`)
  const { told, start, has } = wire()
  for (let times = 1; times <= 3; times += 1) {
    start()
    await has('end', times)
  }
  expect(told.filter((one) => one.startsWith('kept'))).toEqual(['kept 2000', `kept ${socketIdleMs}`, 'kept 1000'])
})

test('a wire that is closed is closed for its server too, and left', async () => {
  script = (socket) => socket.write(answer)
  const { opened, told, start, has } = wire()
  start()
  await has('end')
  opened.close()
  expect(told.at(-1)).toBe('left')
  await until(() => closes === 1)
})

test('a wire that the pool does not keep is closed, and the exchange ends well', async () => {
  script = (socket) => socket.write(answer)
  const { told, start, has } = wire({ keeps: false })
  start()
  await has('end')
  await until(() => closes === 1)
  expect(told.filter((one) => one !== 'left')).toEqual(['connected', '200', 'ok', `kept ${socketIdleMs}`, 'end'])
  expect(told).toContain('left')
})

describe('a kept wire whose server', () => {
  for (const [what, says] of [
    ['closes instead of a second answer', ''],
    ['breaks off the head of the second', 'HTTP/1.1 200'],
    ['breaks off the body of the second', answer.slice(0, -1)],
    ['resets instead of a second answer', undefined],
  ] as const) {
    test(`${what} tells so, once`, async () => {
      script = (socket) => socket.write(answer)
      const { told, start, has } = wire()
      start()
      await has('end')
      script = (socket) => {
        if (says === undefined) return socket.terminate()
        if (says !== '') socket.write(says)
        socket.end()
      }
      start()
      await until(() => told.some((one) => one.startsWith('error')))
      await until(() => closes === 1)
      expect(told.filter((one) => one.startsWith('error') || one === 'end')).toEqual([
        'end',
        expect.stringMatching(/^error: /),
      ])
      expect(told).toContain('left')
    })
  }
})

test.each([undefined, 'tools.lan'])('a wire that cannot be connected tells so once (for %p)', async (certified) => {
  const closed = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = closed
  closed.stop(true)
  const { told, start } = wire({ port, certified })
  start()
  await until(() => told.includes('connected') && told.some((one) => one.startsWith('error')))
  await new Promise(setImmediate)
  const others = told.filter((one) => one !== 'left').sort()
  // Whether it is certified or not was never asked.
  expect(others).toEqual(['connected', expect.not.stringContaining('certificate')])
})

test('a wire whose server speaks no TLS tells so once', async () => {
  script = (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')
  const { told, start } = wire({ certified: 'tools.lan' })
  start()
  await until(() => told.includes('connected') && told.some((one) => one.startsWith('error')))
  await until(() => closes === 1)
  expect(told.filter((one) => one !== 'left').sort()).toEqual(['connected', expect.stringMatching(/^error: /)])
})

test('a wire whose answer is refused is closed, and tells so once', async () => {
  for (const wrong of ['HTTP/1.1 20 OK\r\n\r\n', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}`]) {
    closes = 0
    script = (socket) => socket.write(wrong)
    const { told, start } = wire()
    start()
    await until(() => closes === 1)
    expect(told.filter((one) => one !== 'left')).toEqual(['connected', expect.stringMatching(/^error: /)])
    expect(told).toContain('left')
  }
})

test('an exchange that is broken off tells nothing more, and its wire is left', async () => {
  script = (socket) => socket.write(answer.slice(0, -1))
  const { told, start, has } = wire()
  const breakOff = start()
  await has('o')
  breakOff()
  expect(told.at(-1)).toBe('left')
  await until(() => closes === 1)
  // It is over: this breaks off nothing.
  breakOff()
  expect(told).toEqual(['connected', '200', 'o', 'left'])
})

test('breaking off an exchange that is over does not touch the next', async () => {
  script = (socket) => socket.write(answer)
  const { told, start, has } = wire()
  const breakOff = start()
  await has('end')
  start()
  breakOff()
  await has('end', 2)
  expect([told.includes('left'), closes]).toEqual([false, 0])
})
