/** A connection reads as fast as its exchange may, and no faster. The server is a script. */

import { expect, test } from 'bun:test'
import { openConnection, readAtOnceBytes } from '../../src/upstream/open-connection.ts'
import { unhurried } from '../support/pace.ts'

const request = Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
const body = Buffer.alloc(10 * readAtOnceBytes, 'one line of a long response\n').toString()

/** Waits before every piece, and has memory for so many bytes that wait. */
function slow(memory = Number.POSITIVE_INFINITY): typeof unhurried & { waits: number; held: number } {
  let isDue = true
  return {
    ...unhurried,
    waits: 0,
    held: 0,
    hold(bytes) {
      this.held += bytes
      return this.held <= memory
    },
    release(bytes) {
      this.held -= bytes
    },
    wait() {
      isDue = !isDue
      if (!isDue) this.waits += 1
      return isDue ? 0 : 1
    },
  }
}

async function exchange(answer: string, { ends = false, pace = slow(), abortsAt = Number.POSITIVE_INFINITY } = {}) {
  using server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        // What does not fit is written when there is room.
        const rest = { bytes: Buffer.from(answer) }
        const write = () => {
          rest.bytes = rest.bytes.subarray(Math.max(0, socket.write(rest.bytes)))
          if (rest.bytes.length > 0) setImmediate(write)
          else if (ends) socket.end()
        }
        write()
      },
    },
  })
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ''
  const kept: number[] = []
  const connection = openConnection(
    { address: '127.0.0.1', port: server.port, certified: undefined },
    { connected() {}, leave: () => queueMicrotask(() => resolve('left')), keep: (_, ms) => kept.push(ms) > 0 },
  )
  const abort = connection.start(request, {
    ...pace,
    wait: () => pace.wait(),
    hold(bytes) {
      const isHeld = pace.hold(bytes)
      if (!isHeld) abort()
      return isHeld
    },
    release: (bytes) => pace.release(bytes),
    onHead() {},
    onData(chunk) {
      received += chunk.toString()
      if (received.length >= abortsAt) abort()
    },
    onEnd: () => resolve('end'),
    onError: (error) => resolve(error.message),
  })
  const outcome = await promise
  connection.close()
  return { outcome, received, kept: kept.length, waits: pace.waits, held: pace.held }
}

const head = (more: string) => `HTTP/1.1 200 OK\r\n${more}\r\n`

test('a response is whole and in order however often its bytes wait, and its connection is kept', async () => {
  const { outcome, received, kept, waits, held } = await exchange(head(`content-length: ${body.length}\r\n`) + body)
  expect({ outcome, kept, isWhole: received === body }).toEqual({ outcome: 'end', kept: 1, isWhole: true })
  // Each byte that waited counted as long as it did.
  expect(held).toBe(0)
  expect(waits).toBeGreaterThanOrEqual(10)
})

test('a response that its server ends by closing is whole, although bytes waited at the time', async () => {
  const { outcome, received } = await exchange(head('') + body, { ends: true })
  expect({ outcome, isWhole: received === body }).toEqual({ outcome: 'end', isWhole: true })
})

test('an exchange that is aborted while bytes wait receives no more of them', async () => {
  const answer = head(`content-length: ${body.length}\r\n`) + body
  const { received, outcome } = await exchange(answer, { abortsAt: 1 })
  expect(received.length).toBeLessThanOrEqual(readAtOnceBytes)
  expect(outcome).toBe('left')
})

test('bytes after a response that ends with a piece are no response to the next request', async () => {
  const start = head(`content-length: ${readAtOnceBytes - 100}\r\n`)
  const length = readAtOnceBytes - start.length
  const first = head(`content-length: ${length}\r\n`) + body.slice(0, length)
  expect(first.length).toBe(readAtOnceBytes)
  const { outcome, kept } = await exchange(`${first}${head('content-length: 4\r\n')}evil`, {
    pace: { ...unhurried, waits: 0, held: 0 },
  })
  expect({ outcome, kept }).toEqual({ outcome: expect.stringMatching(/^(end|left)$/), kept: 0 })
})

test('an exchange whose owner has no memory for bytes that wait is aborted', async () => {
  const answer = head(`content-length: ${body.length}\r\n`) + body
  const { received, outcome } = await exchange(answer, { pace: slow(readAtOnceBytes / 2) })
  expect([outcome, received.length < body.length]).toEqual(['left', true])
})

test('an answer before the request is written is none, on a connection that is kept, and the request is never sent', async () => {
  const ok = `${head('content-length: 2\r\n')}{}`
  let asked = 0
  const server = Promise.withResolvers<Bun.Socket>()
  using listening = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: (socket) => server.resolve(socket),
      data(socket) {
        asked += 1
        socket.write(ok)
      },
    },
  })
  const left = Promise.withResolvers<void>()
  const connection = openConnection(
    { address: '127.0.0.1', port: listening.port, certified: undefined },
    { connected() {}, leave: () => left.resolve(), keep: () => true },
  )
  /** How an exchange ends, and how often it began to write. */
  const exchanged = (mayBegin: () => Promise<void> | undefined) => {
    const ended = Promise.withResolvers<string>()
    let written = 0
    connection.start(request, {
      ...unhurried,
      mayBegin,
      onWrite() {
        written += 1
      },
      onHead() {},
      onData() {},
      onEnd: () => ended.resolve(`answered, ${written} written`),
      onError: ({ message }) => ended.resolve(`${message}, ${written} written`),
    })
    return ended.promise
  }
  expect(await exchanged(() => undefined)).toBe('answered, 1 written')
  const isAllowed = Promise.withResolvers<void>()
  const second = exchanged(() => isAllowed.promise)
  const socket = await server.promise
  socket.write(ok)
  expect(await second).toBe('it sent data before the request, 0 written')
  isAllowed.resolve()
  await left.promise
  expect(asked).toBe(1)
})
