/** What is made of an exchange whose other side is told, step by step, what to say. */

import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { createFairness } from '../../src/fairness/fairness.ts'
import { ownerOf } from '../../src/fairness/owner.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { createOwnerPasses, ownerRequestsPerPassMax } from '../../src/fairness/passes.ts'
import { Shares } from '../../src/fairness/shares.ts'
import { dnsCacheTtlMs, upstreamBodyTimeoutMs, upstreamResponseBytesMax } from '../../src/limits.ts'
import { createAddresses } from '../../src/upstream/addresses.ts'
import { deadlineTickMs } from '../../src/upstream/deadline-clock.ts'
import { CertificateError } from '../../src/upstream/handshake.ts'
import type { Endpoint, ResponseHandler } from '../../src/upstream/http-connection.ts'
import { createUpstream, type UpstreamOptions } from '../../src/upstream/pooled-upstream.ts'
import type { UpstreamRequest } from '../../src/upstream/upstream.ts'
import { clockOf } from '../support/clock.ts'

const holder = { keyId: 'key', family: 'key' }

const json = { 'content-type': 'application/json' }
const events = { 'content-type': 'text/event-stream' }
const bytes = (text: string | number): Buffer<ArrayBuffer> =>
  typeof text === 'string' ? Buffer.from(text) : Buffer.alloc(text)

/** One request under way, and what its other side says. */
async function exchange(more: Partial<UpstreamRequest> = {}, options: UpstreamOptions = {}) {
  const observed: string[] = []
  const opened: { origin: Endpoint; request: Buffer; aborts: number }[] = []
  let receiver: ResponseHandler | undefined
  const addresses = createAddresses({
    allowed: [],
    isPublicAllowed: true,
    isSelf: () => false,
    resolve: async () => ['93.184.215.14'],
  })
  const upstream = createUpstream(addresses, {
    observe: (outcome) => void observed.push(outcome),
    open: (origin) => ({
      start(request, given) {
        const one = { origin, request, aborts: 0 }
        opened.push(one)
        receiver = given
        return () => {
          one.aborts += 1
        }
      },
      close() {},
    }),
    ...options,
  })
  const answer = upstream.send({
    url: 'https://a.example.com/mcp?x=1',
    headers: {},
    timeoutMs: 60_000,
    holder,
    ...more,
  })
  answer.catch(() => {})
  for (let i = 0; receiver === undefined && i < 100; i += 1) await Promise.resolve()
  if (receiver === undefined) throw new Error('nothing was sent')
  return { answer, receiver, observed, one: () => opened[0] }
}

test('a request goes to the address of the name, under that name', async () => {
  const { one, receiver } = await exchange({ method: 'GET', headers: { 'x-a': '1' }, via: '1.1 proxy' })
  expect(one()?.origin).toMatchObject({ address: '93.184.215.14', port: 443, certified: 'a.example.com' })
  const lines = ['host: a.example.com', 'accept-encoding: identity', 'x-a: 1', 'via: 1.1 proxy, 1.1 postern']
  expect(one()?.request.toString()).toBe(`GET /mcp?x=1 HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  receiver.onError(new Error('enough'))
  const plain = await exchange({ url: 'http://a.example.com:8080/' })
  expect(plain.one()?.origin).toMatchObject({ port: 8080, certified: undefined })
  plain.receiver.onError(new Error('enough'))
  const usual = await exchange({ url: 'http://a.example.com/', body: '{}' })
  expect([usual.one()?.origin.port, usual.one()?.request.toString('latin1', 0, 5)]).toEqual([80, 'POST '])
  usual.receiver.onError(new Error('enough'))
})

test('an answer is given whole, in the order it came, and observed once', async () => {
  const { answer, receiver, observed, one } = await exchange()
  receiver.onHead(200, json)
  receiver.onData(bytes('{"a":'))
  receiver.onData(bytes('1}'))
  expect(observed).toEqual([])
  receiver.onEnd()
  const { status, headers, body } = await answer
  expect([status, headers, Buffer.from(body as Uint8Array).toString()]).toEqual([200, json, '{"a":1}'])
  expect([observed, one()?.aborts]).toEqual([['200'], 0])
})

test('a document that is parsed here takes its owner more time than an answer that is passed on', async () => {
  const spent: number[] = []
  class Noted extends Paces {
    override spend(_: string, milliseconds: number) {
      spent.push(milliseconds)
    }
  }
  const fairness = { ...createFairness(), time: new Noted(clockOf(() => 0)) }
  for (const more of [{}, { bodyBytesMax: 2 ** 21 }, { isParsed: true }]) {
    const { receiver, answer } = await exchange(more, { fairness })
    receiver.onHead(200, json)
    receiver.onData(bytes(2 ** 20))
    receiver.onEnd()
    await answer
  }
  expect(spent).toEqual([4, 0.5, 200, 0.5, 200])
})

test('a stream that is parsed here takes time as it arrives, and at the end of each line', async () => {
  const time = new Paces(clockOf(() => 0))
  const waited = () => time.wait(ownerOf(holder))
  const { receiver } = await exchange({ isParsed: true }, { fairness: { ...createFairness(), time } })
  receiver.onHead(200, events)
  receiver.onData(bytes(2 ** 18))
  const unfinished = waited()
  receiver.onData(bytes('\n'))
  expect(unfinished).toBeGreaterThan(0)
  expect(waited()).toBeGreaterThan(unfinished + 200)
})

test('documents that are complete at the same moment are parsed one after another, as their owner has time', async () => {
  let now = 0
  const fairness = { ...createFairness(), time: new Paces(clockOf(() => now)) }
  const isDone = [false, false]
  const both = [0, 1].map(async (index) => {
    const { receiver, answer } = await exchange({ isParsed: true }, { fairness })
    receiver.onHead(200, json)
    receiver.onData(bytes(2 ** 16))
    receiver.onEnd()
    await answer
    isDone[index] = true
  })
  await both[0]
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(isDone).toEqual([true, false])
  now += 1000
  await Promise.all(both)
})

test('exchanges of one owner that end at the same moment end a few in each pass of the event loop', async () => {
  const most = ownerRequestsPerPassMax
  const ends: [name: string, end: (receiver: ResponseHandler, body: ReadableStream) => void][] = [
    ['their client goes', (_, body) => void body.cancel()],
    [
      'their server goes',
      (receiver) => receiver.onError(new Error('it closed the connection before the end of its response')),
    ],
    ['they are whole', (receiver) => receiver.onEnd()],
  ]
  for (const [name, end] of ends) {
    const passes: (() => void)[] = []
    const requests = new Shares(1000)
    const fairness = { ...createFairness(), requests, passes: createOwnerPasses((run) => void passes.push(run)) }
    let ended = 0
    const giveBack = requests.giveBack.bind(requests)
    requests.giveBack = (of, amount) => {
      ended += Number(amount > 0)
      giveBack(of, amount)
    }
    const streams = Array.from({ length: 3 * most }, async () => {
      const { receiver, answer } = await exchange({}, { fairness })
      receiver.onHead(200, events)
      return { receiver, body: (await answer).body as ReadableStream }
    })
    for (const { receiver, body } of await Promise.all(streams)) end(receiver, body)
    const counts: number[] = []
    for (let pass = 0; pass < 3; pass += 1) {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
      counts.push(ended)
      for (const run of passes.splice(0)) run()
    }
    expect([name, ...counts]).toEqual([name, most, 2 * most, 3 * most])
  }
})

describe('the body', () => {
  const rows: [status: number, headers: Record<string, string>, isRead: boolean][] = [
    [200, json, true],
    [299, json, true],
    [300, json, false],
    [307, json, false],
    [399, json, false],
    [400, json, true],
    [401, json, false],
    [404, json, true],
    [499, json, true],
    [500, json, false],
    [599, json, false],
    [200, { ...json, 'content-encoding': 'gzip' }, false],
    [200, { ...json, 'content-encoding': 'identity' }, true],
    // Of what is refused, a stream is read whole.
    [400, events, true],
  ]
  for (const [status, headers, isRead] of rows) {
    test(`of ${status} ${JSON.stringify(headers)} is ${isRead ? 'read' : 'left alone, and the exchange with it'}`, async () => {
      const { answer, receiver, one } = await exchange()
      receiver.onHead(status, headers)
      if (isRead) {
        receiver.onData(bytes('{}'))
        receiver.onEnd()
      }
      const { body } = await answer
      expect([body !== undefined, one()?.aborts]).toEqual([isRead, isRead ? 0 : 1])
    })
  }
})

test('a stream is given as it comes, and ends as it ends', async () => {
  const { answer, receiver } = await exchange()
  receiver.onHead(200, { 'content-type': 'Text/Event-Stream; charset=utf-8' })
  const { body } = await answer
  expect(body).toBeInstanceOf(ReadableStream)
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  const first = reader.read()
  receiver.onData(bytes('data: 1\n\n'))
  expect(Buffer.from((await first).value ?? []).toString()).toBe('data: 1\n\n')
  receiver.onData(bytes('data: 2\n\n'))
  receiver.onEnd()
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: 2\n\n')
  expect((await reader.read()).done).toBe(true)
})

test('a stream that its reader leaves, or that breaks off, ends on the other side too', async () => {
  const left = await exchange()
  left.receiver.onHead(200, events)
  await ((await left.answer).body as ReadableStream).cancel()
  expect(left.one()?.aborts).toBe(1)
  const broken = await exchange()
  broken.receiver.onHead(200, events)
  const reading = new Response((await broken.answer).body as ReadableStream).text()
  broken.receiver.onError(new Error('reset'))
  await expect(reading).rejects.toThrow('connection refused or reset')
})

describe('an answer that cannot be used is', () => {
  const rows: [what: string, act: (receiver: ResponseHandler) => void, kind: string, message: string][] = [
    ['an exchange that broke', (one) => one.onError(new Error('x')), 'down', 'connection refused or reset'],
    ['a certificate', (one) => one.onError(new CertificateError(null)), 'down', 'its certificate was not accepted'],
    ['a status that is none', (one) => one.onHead(600, json), 'down', 'it answered 600'],
    [
      'more than is read of one',
      (one) => {
        one.onHead(200, json)
        one.onData(bytes(upstreamResponseBytesMax))
        one.onData(bytes(1))
      },
      'down',
      `its response is larger than ${upstreamResponseBytesMax} bytes`,
    ],
  ]
  for (const [what, act, kind, message] of rows) {
    test(what, async () => {
      const { answer, receiver, observed, one } = await exchange()
      act(receiver)
      await expect(answer).rejects.toMatchObject({ kind, message: expect.stringContaining(message) })
      expect([observed, one()?.aborts]).toEqual([[kind], 1])
    })
  }

  test('not one of exactly as much as is read', async () => {
    const { answer, receiver } = await exchange()
    receiver.onHead(200, json)
    receiver.onData(bytes(upstreamResponseBytesMax))
    receiver.onEnd()
    expect((await answer).body).toHaveLength(upstreamResponseBytesMax)
  })
})

test('what one caller’s answers take of memory is bounded, and given back', async () => {
  // A quarter is one token's share.
  const fairness = { ...createFairness(), memory: new Shares(400) }
  const full = await exchange({}, { fairness })
  full.receiver.onHead(200, json)
  full.receiver.onData(bytes(100))
  const refused = await exchange({}, { fairness })
  refused.receiver.onHead(200, json)
  refused.receiver.onData(bytes(1))
  await expect(refused.answer).rejects.toMatchObject({ kind: 'busy' })
  full.receiver.onEnd()
  await full.answer
  const next = await exchange({}, { fairness })
  next.receiver.onHead(200, json)
  next.receiver.onData(bytes(100))
  next.receiver.onError(new Error('x'))
  await expect(next.answer).rejects.toMatchObject({ kind: 'down' })
  const last = await exchange({}, { fairness })
  last.receiver.onHead(200, json)
  last.receiver.onData(bytes(100))
  last.receiver.onEnd()
  expect((await last.answer).body).toHaveLength(100)
})

test('an announced length is taken at the head: too much of it is refused before a byte of it came', async () => {
  const fairness = { ...createFairness(), memory: new Shares(400) }
  const length = (count: number) => ({ ...json, 'content-length': String(count) })
  const full = await exchange({}, { fairness })
  full.receiver.onHead(200, length(100))
  const refused = await exchange({}, { fairness })
  refused.receiver.onHead(200, length(1))
  await expect(refused.answer).rejects.toMatchObject({ kind: 'busy' })
  expect(refused.one()?.aborts).toBe(1)
  full.receiver.onData(bytes(100))
  full.receiver.onEnd()
  expect((await full.answer).body).toHaveLength(100)
  const huge = await exchange()
  huge.receiver.onHead(200, length(upstreamResponseBytesMax + 1))
  await expect(huge.answer).rejects.toMatchObject({
    kind: 'down',
    message: `its response is larger than ${upstreamResponseBytesMax} bytes`,
  })
})

test('lines of an event stream take their owner’s time, whatever ends them', async () => {
  const waits: number[] = []
  for (const end of ['\n', '\r', '\r\n']) {
    const time = new Paces(clockOf(() => 0))
    const { receiver } = await exchange({}, { fairness: { ...createFairness(), time } })
    receiver.onHead(200, events)
    receiver.onData(bytes(`:${end}`.repeat(20_000)))
    waits.push(time.wait(ownerOf(holder)))
  }
  // 1.5 microseconds each are 30 ms; six are free, and the rest is a fifth of the time.
  for (const wait of waits) expect(wait).toBeWithin(119, 125)
})

test('what is received takes its owner’s time', async () => {
  const time = new Paces(clockOf(() => 0))
  const { receiver } = await exchange({}, { fairness: { ...createFairness(), time } })
  receiver.onHead(200, json)
  receiver.onData(bytes(2 ** 20))
  expect(time.wait(ownerOf(holder))).toBe(0)
  for (let i = 0; i < 5; i += 1) receiver.onData(bytes(2 * 2 ** 20))
  expect(time.wait(ownerOf(holder))).toBeGreaterThan(0)
})

test('an answer that takes too long is late, and a client that left is gone', async () => {
  const late = await exchange({ timeoutMs: 1 })
  await expect(late.answer).rejects.toMatchObject({ kind: 'late', message: 'no response within 1 s' })
  expect([late.observed, late.one()?.aborts]).toEqual([['late'], 1])
  // The time that the look-up took is not the time that was allowed.
  const used = await exchange({ url: 'https://93.184.215.14/', timeoutMs: 0.0001 })
  await expect(used.answer).rejects.toMatchObject({ kind: 'late', message: 'no response within 1 s' })
  const client = new AbortController()
  const gone = await exchange({ signal: () => client.signal })
  client.abort()
  await expect(gone.answer).rejects.toMatchObject({ kind: 'gone' })
  expect([gone.observed, gone.one()?.aborts]).toEqual([['gone'], 1])
})

test('what cannot be sent is told at once', async () => {
  const addresses = createAddresses({ allowed: [], isPublicAllowed: true, isSelf: () => false })
  const upstream = createUpstream(addresses)
  const send = (url: string, headers: Record<string, string> = {}) =>
    upstream.send({ holder, url, headers, timeoutMs: 1000 })
  await expect(send('http://93.184.215.14/', { 'x-a': 'a\nb' })).rejects.toMatchObject({ kind: 'down' })
  await expect(send('http://10.0.0.1/')).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringMatching(/^10\.0\.0\.1 is not a public address/),
  })
})

test('what is no failure of the server is thrown as it is, and observed as one that is down', async () => {
  const observed: string[] = []
  const addresses = createAddresses({
    allowed: [],
    isPublicAllowed: true,
    isSelf: () => false,
    resolve: () => {
      throw new RangeError('no resolver')
    },
  })
  const upstream = createUpstream(addresses, { observe: (outcome) => void observed.push(outcome) })
  const send = (url: string) => upstream.send({ holder, url, headers: {}, timeoutMs: 1000 })
  await expect(send('https://a.example.com/')).rejects.toThrow(RangeError)
  await expect(send('no address')).rejects.toThrow(TypeError)
  await expect(send('http://10.0.0.1/')).rejects.toMatchObject({ kind: 'refused' })
  expect(observed).toEqual(['down', 'down', 'refused'])
})

describe('by a clock of its own', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())
  /** Of an address: the look-up of a name has timers. */
  const timed = (more: Partial<UpstreamRequest>) => exchange({ url: 'https://93.184.215.14/', ...more })
  /** What has become of the answer by now. */
  async function now(answer: Promise<unknown>): Promise<unknown> {
    let outcome: unknown = 'under way'
    answer.then(
      (given) => {
        outcome = given
      },
      (error) => {
        outcome = `${error.kind}: ${error.message}`
      },
    )
    for (let i = 0; i < 20; i += 1) await Promise.resolve()
    return outcome
  }

  for (const [what, end, expected] of [
    ['its client goes', (client: AbortController) => client.abort(), 'gone: the client disconnected'],
    [
      'its time is over',
      () => jest.advanceTimersByTime(upstreamBodyTimeoutMs + deadlineTickMs),
      'busy: this caller has too many unread responses open',
    ],
  ] as const)
    test(`a whole response that waits for its owner’s time counts for it until ${what}`, async () => {
      const size = 2 ** 16
      const shares = { memory: new Shares(8 * size), requests: new Shares(4) }
      const fairness = { ...createFairness(), ...shares, time: new Paces(clockOf(() => 0)) }
      const mayTakeMore = () => [shares.memory.take(holder, size), shares.requests.take(holder, 1)]
      const client = new AbortController()
      const { receiver, answer, one } = await exchange({ isParsed: true, signal: () => client.signal }, { fairness })
      jest.advanceTimersByTime(deadlineTickMs)
      receiver.onHead(200, json)
      receiver.onData(bytes(size))
      receiver.onData(bytes(size))
      fairness.time.spend(ownerOf(holder), 1000)
      receiver.onEnd()
      expect(await now(answer)).toBe('under way')
      expect(mayTakeMore()).toEqual([false, false])
      end(client)
      expect(await now(answer)).toBe(expected)
      expect(mayTakeMore()).toEqual([true, true])
      // The connection may be another exchange's.
      expect(one()?.aborts).toBe(0)
    })

  test('those of one owner that are late at the same tick end a few in each pass of the event loop', async () => {
    const most = ownerRequestsPerPassMax
    const passes: (() => void)[] = []
    const fairness = { ...createFairness(), passes: createOwnerPasses((run) => void passes.push(run)) }
    const late = { url: 'https://93.184.215.14/', timeoutMs: 1000 }
    const all = await Promise.all(Array.from({ length: 3 * most }, () => exchange(late, { fairness })))
    jest.advanceTimersByTime(1000 + deadlineTickMs)
    const counts: number[] = []
    for (let pass = 0; pass < 3; pass += 1) {
      const ends = await Promise.all(all.map(({ answer }) => now(answer)))
      counts.push(ends.filter((end) => end !== 'under way').length)
      for (const run of passes.splice(0)) run()
    }
    expect(counts).toEqual([most, 2 * most, 3 * most])
  })

  test('a head has its time to the millisecond, and the message says how long', async () => {
    const { answer, observed, one } = await timed({ timeoutMs: 2 * deadlineTickMs })
    jest.advanceTimersByTime(2 * deadlineTickMs - 1)
    expect(await now(answer)).toBe('under way')
    jest.advanceTimersByTime(1)
    expect(await now(answer)).toBe('late: no response within 1 s')
    expect([observed, one()?.aborts]).toEqual([['late'], 1])
    const longer = await timed({ timeoutMs: 1001 })
    jest.advanceTimersByTime(1000)
    expect(await now(longer.answer)).toBe('under way')
    jest.advanceTimersByTime(deadlineTickMs)
    expect(await now(longer.answer)).toBe('late: no response within 2 s')
    expect(jest.getTimerCount()).toBe(0)
  })

  test('what the look-up took counts', async () => {
    jest.advanceTimersByTime(7000)
    let resolved: (addresses: string[]) => void = () => {}
    const addresses = createAddresses({
      allowed: [],
      isPublicAllowed: true,
      isSelf: () => false,
      resolve: () =>
        new Promise((resolve) => {
          resolved = resolve
        }),
    })
    const seconds: number[] = []
    const upstream = createUpstream(addresses, {
      open: () => ({ start: () => () => {}, close() {} }),
      observe: (_, taken) => void seconds.push(taken),
    })
    const answer = upstream.send({ holder, url: 'https://a.example.com/', headers: {}, timeoutMs: 1000 })
    answer.catch(() => {})
    jest.advanceTimersByTime(900)
    resolved(['93.184.215.14'])
    expect(await now(answer)).toBe('under way')
    jest.advanceTimersByTime(99)
    expect(await now(answer)).toBe('under way')
    jest.advanceTimersByTime(1)
    expect(await now(answer)).toStartWith('late')
    expect(seconds).toEqual([1])
  })

  test('a body has its own time, from its head on', async () => {
    const { answer, receiver, one } = await timed({ timeoutMs: 1000 })
    jest.advanceTimersByTime(950)
    receiver.onHead(200, json)
    jest.advanceTimersByTime(upstreamBodyTimeoutMs - 1)
    receiver.onData(bytes('{'))
    expect(await now(answer)).toBe('under way')
    jest.advanceTimersByTime(1)
    expect(await now(answer)).toBe('late: it did not finish its response in time')
    expect(one()?.aborts).toBe(1)
  })

  test('a stream is never late, and nothing looks at it without a signal', async () => {
    const { answer, receiver, one } = await timed({ timeoutMs: 1000 })
    receiver.onHead(200, events)
    const { body } = await answer
    jest.advanceTimersByTime(deadlineTickMs)
    expect(jest.getTimerCount()).toBe(0)
    jest.advanceTimersByTime(10 * upstreamBodyTimeoutMs)
    receiver.onData(bytes('data: 1\n\n'))
    receiver.onEnd()
    expect(await new Response(body as ReadableStream).text()).toBe('data: 1\n\n')
    expect(one()?.aborts).toBe(0)
  })

  test('a stream whose head came in the last moment is not late at the next tick', async () => {
    const { answer, receiver, one } = await timed({ timeoutMs: deadlineTickMs + 10 })
    jest.advanceTimersByTime(deadlineTickMs + 5)
    receiver.onHead(200, events)
    const { body } = await answer
    jest.advanceTimersByTime(2 * deadlineTickMs)
    receiver.onEnd()
    expect([await new Response(body as ReadableStream).text(), one()?.aborts]).toEqual(['', 0])
  })

  test('the client’s signal is asked for at the first tick, once, and left at the end', async () => {
    const client = new AbortController()
    let asked = 0
    const signal = () => {
      asked += 1
      return client.signal
    }
    const { answer, receiver, observed, one } = await timed({ signal })
    jest.advanceTimersByTime(deadlineTickMs - 1)
    expect(asked).toBe(0)
    jest.advanceTimersByTime(1)
    receiver.onHead(200, json)
    jest.advanceTimersByTime(3 * deadlineTickMs)
    expect([asked, jest.getTimerCount()]).toEqual([1, 1])
    receiver.onEnd()
    expect(await now(answer)).toMatchObject({ status: 200 })
    client.abort()
    jest.advanceTimersByTime(deadlineTickMs)
    expect([observed, one()?.aborts, jest.getTimerCount()]).toEqual([['200'], 0, 0])
  })

  test('a stream’s client is listened to, and not one that has left the watch', async () => {
    const client = new AbortController()
    const { answer, receiver, one } = await timed({ signal: () => client.signal })
    receiver.onHead(200, events)
    const { body } = await answer
    jest.advanceTimersByTime(2 * deadlineTickMs)
    expect(jest.getTimerCount()).toBe(0)
    client.abort()
    await expect(new Response(body as ReadableStream).text()).rejects.toThrow('the client disconnected')
    expect(one()?.aborts).toBe(1)
  })

  test('a signal that has fired already is not waited for', async () => {
    const { answer, one } = await timed({ signal: () => AbortSignal.abort() })
    jest.advanceTimersByTime(deadlineTickMs)
    expect(await now(answer)).toBe('gone: the client disconnected')
    expect(one()?.aborts).toBe(1)
  })

  test('a route serves until its addresses are too old, and its pool longer', async () => {
    let looked = 0
    const origins: Endpoint[] = []
    const addresses = createAddresses({
      allowed: [],
      isPublicAllowed: true,
      isSelf: () => false,
      async resolve() {
        looked += 1
        return [looked < 3 ? '93.184.215.14' : '93.184.215.15']
      },
    })
    const upstream = createUpstream(addresses, {
      open(origin, { connected, keep }) {
        origins.push(origin)
        const wire = {
          start(_: Buffer, receiver: ResponseHandler) {
            connected()
            receiver.onHead(204, {})
            keep(wire, 60_000)
            receiver.onEnd()
            return () => {}
          },
          close() {},
        }
        return wire
      },
    })
    const send = (url: string) => upstream.send({ holder, url, headers: {}, timeoutMs: 1000 })
    const url = 'https://a.example.com/'
    await send(url)
    jest.advanceTimersByTime(dnsCacheTtlMs - 1)
    await send(url)
    expect(looked).toBe(1)
    jest.advanceTimersByTime(1)
    await send(url)
    expect([looked, origins.length]).toEqual([2, 1])
    jest.advanceTimersByTime(dnsCacheTtlMs)
    await send(url)
    // Another port has a pool of its own.
    await send('https://a.example.com:8443/')
    expect(origins.map(({ address, port }) => `${address}:${port}`)).toEqual([
      '93.184.215.14:443',
      '93.184.215.15:443',
      '93.184.215.15:8443',
    ])
  })
})

test('requests in progress are counted, and one past the share is not sent', async () => {
  const fairness = { ...createFairness(), requests: new Shares(4) }
  const first = await exchange({}, { fairness })
  await expect(exchange({}, { fairness })).rejects.toThrow('nothing was sent')
  first.receiver.onHead(200, json)
  first.receiver.onEnd()
  await first.answer
  const next = await exchange({}, { fairness })
  next.receiver.onError(new Error('x'))
  await expect(next.answer).rejects.toMatchObject({ kind: 'down' })
  const last = await exchange({}, { fairness })
  last.receiver.onHead(200, json)
  last.receiver.onEnd()
  expect((await last.answer).status).toBe(200)
})
