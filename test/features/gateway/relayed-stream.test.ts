/** Streams of events, looked into: whole events out, whatever pieces they came in. */

import { afterEach, describe, expect, jest, test } from 'bun:test'
import { PlatformError } from '../../../src/errors.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import type { Work } from '../../../src/fairness/turns.ts'
import {
  errorsAsMessages,
  messageEvent,
  readMessages,
  relayStream,
  rewriteAnswer,
} from '../../../src/features/gateway/relayed-stream.ts'
import { streamInPieces as piecesOf, responsePieceBytes } from '../../../src/http/respond.ts'
import {
  eventBytesAtOnce,
  streamBytesMax,
  streamEventBytesMax,
  streamIdleTimeoutMs,
  streamLifetimeMs,
} from '../../../src/limits.ts'
import { nextTurn } from '../../../src/next-turn.ts'
import { drained } from '../../../src/schema/steps.ts'
import { random } from '../../support/random.ts'

function streamInPieces(text: string, sizeOf: () => number): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text)
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      const end = at + sizeOf()
      controller.enqueue(Uint8Array.prototype.slice.call(bytes, at, end))
      at = end
    },
  })
}
const read = async (text: string, sizeOf: () => number) => {
  let ended = 0
  const out = relayStream(streamInPieces(text, sizeOf), {
    rewrite: async (data) => data.toUpperCase(),
    onEnd: () => (ended += 1),
  })
  const result = await new Response(out).text()
  return { result, ended }
}

test('events come out the same from any pieces, with what is not theirs kept', async () => {
  const text = ': hello\n\nid: 1\nevent: message\ndata: {"a":"é€😀"}\n\nretry: 500\r\n\r\ndata: one\ndata: two\n\n'
  const whole = await read(text, () => text.length * 4)
  const events = 'event: message\nid: 1\ndata: {"A":"É€😀"}\n\nretry: 500\n\ndata: ONE\ndata: TWO\n\n'
  expect(whole).toEqual({ result: `:\n\n${events}`, ended: 1 })
  for (let seed = 1; seed <= 200; seed += 1) {
    const chance = random(seed)
    expect({ seed, ...(await read(text, () => 1 + chance.int(5))) }).toEqual({ seed, ...whole })
  }
})

test('a reader that was behind gets hundreds of thousands of events, in turns with others', async () => {
  for (const event of ['data:{}\n\n', ':\n', 'id:\r']) {
    let turns = 0
    let isOver = false
    const tick = () => {
      turns += 1
      if (!isOver) setImmediate(tick)
    }
    setImmediate(tick)
    // More in all than one event may have.
    const count = Math.ceil((5 * 2 ** 20) / event.length)
    const { result, ended } = await read(event.repeat(count), () => 16 * 2 ** 20)
    isOver = true
    expect([ended, turns > 10]).toEqual([1, true])
    if (event.startsWith('data')) expect(result.split('\n\n')).toHaveLength(count + 1)
  }
})

test('a byte order mark is one at the beginning alone', async () => {
  const pieces = ['\ufeffdata: a\n\n', '\ufeffdata: b\n\n', 'data: c\n\n']
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Buffer.from(piece))
      controller.close()
    },
  })
  const out = relayStream(body, { rewrite: async (data) => data, onEnd() {} })
  expect(await new Response(out).text()).toBe('data: a\n\ndata: c\n\n')
})

test('others have their turn while one piece is looked through, after each step of it', async () => {
  const steps = 100
  // With an event in each step, and without any.
  for (const line of [`data: ${'a'.repeat(eventBytesAtOnce)}\n\n`, `${'id: 1\n'.repeat(eventBytesAtOnce / 6)}\n`]) {
    let turns = 0
    let isOver = false
    const tick = () => {
      turns += 1
      if (!isOver) setImmediate(tick)
    }
    setImmediate(tick)
    await read(line.repeat(steps), () => steps * line.length)
    isOver = true
    expect(turns).toBeGreaterThanOrEqual(steps - 1)
  }
})

test('a long event in many small pieces is looked through once', async () => {
  // Fifty thousand pieces of one line: looked through again with each, it would take minutes.
  const line = 'x'.repeat(3 * 2 ** 20)
  const { result, ended } = await read(`data: ${line}\n\n`, () => 64)
  expect([result.length, ended]).toEqual([line.length + 8, 1])
})

const responseOf = (type: string, text: string) =>
  new Response(text, { status: 201, headers: { 'content-type': type } })

test('an answer of our own is rewritten whole, or event by event, and is otherwise the same', async () => {
  for (const [type, text, rewritten] of [
    ['application/json', '{"a":1}', '{"A":1}'],
    ['text/event-stream; charset=utf-8', 'data: {"a":1}\n\ndata: b\n\n', 'data: {"A":1}\n\ndata: B\n\n'],
  ] as const) {
    const { headers } = responseOf(type, '')
    expect(await rewriteAnswer(text, headers, async (data) => data.toUpperCase())).toBe(rewritten)
  }
})

test('what cannot be rewritten is an error for the request that asked, and a bug is none', async () => {
  const refusing = errorsAsMessages(async () => {
    throw new PlatformError('upstream_error', 'too much')
  }, 'mine')
  expect(JSON.parse(await refusing('x'))).toMatchObject({ id: 'mine', error: { message: 'too much' } })
  const reading = errorsAsMessages(async (data) => JSON.parse(data), 'mine')
  const notInMcp = 'The MCP server does not answer in MCP: check the URL of the connection'
  expect(JSON.parse(await reading('{'))).toMatchObject({ id: 'mine', error: { message: notInMcp } })
  const broken = errorsAsMessages(() => Promise.reject(new TypeError('a bug')), 1)
  await expect(broken('x')).rejects.toThrow(TypeError)
})

test('bytes in pieces are all the bytes, and their end is told once they were taken', async () => {
  for (const length of [0, 1, 65_535, 65_536, 65_537, 200_000]) {
    const bytes = new Uint8Array(length).map((_, i) => i)
    let ended = 0
    const taken = await new Response(piecesOf(bytes, () => (ended += 1))).bytes()
    expect([Buffer.compare(taken, bytes), ended]).toEqual([0, 1])
  }
  let told = 0
  const inTwo = piecesOf(new Uint8Array(2 * responsePieceBytes), () => (told += 1)).getReader()
  const lengths: unknown[] = []
  for (let i = 0; i < 2; i += 1) lengths.push((await inTwo.read()).value?.length, told)
  expect(lengths).toEqual([responsePieceBytes, 0, responsePieceBytes, 1])
  let ended = 0
  await piecesOf(new Uint8Array(200_000), () => (ended += 1)).cancel()
  expect(ended).toBe(1)
})

test('messages are taken one by one until there are enough, and their characters counted', async () => {
  const taken: unknown[] = []
  const messages = (response: Response, enough = Infinity) => {
    taken.length = 0
    const take = (message: unknown) => taken.push(message) >= enough
    return readMessages(response, 1, { take, read: async (text) => JSON.parse(text) })
  }
  expect(await messages(responseOf('application/json', '{"a":1}'))).toBe(7)
  expect(taken).toEqual([{ a: 1 }])
  const three = 'id: 1\ndata: \n\ndata: 1\n\ndata: 22\n\ndata: 3\n\n'
  expect(await messages(responseOf('text/event-stream', three))).toBe(4)
  expect(taken).toEqual([1, 22, 3])
  await messages(responseOf('text/event-stream', three), 2)
  expect(taken).toEqual([1, 22])
  // Clients leave events of other types alone.
  await messages(responseOf('text/event-stream', 'event: ping\ndata: 1\n\nevent: message\ndata: 2\n\n'))
  expect(taken).toEqual([2])
  // At the end of a stream no line feed follows a carriage return.
  await messages(responseOf('text/event-stream', 'data: 1\r\r'))
  expect(taken).toEqual([1])
  expect(await messages(new Response(null))).toBe(0)
  await expect(messages(responseOf('application/json', 'no'))).rejects.toThrow(
    'The MCP server does not answer in MCP: check the URL of the connection',
  )
  // A stream ends there.
  await messages(responseOf('text/event-stream', 'data: 1\n\ndata: no\n\ndata: 2\n\n'))
  expect(taken).toEqual([1])
})

test('whoever has the message that it wants lets the stream go', async () => {
  let isLetGo = false
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from('data: 1\n\n')),
    cancel() {
      isLetGo = true
    },
  })
  const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  await readMessages(response, 1, { take: () => true, read: async (text) => text })
  expect(isLetGo).toBe(true)
})

test('a stream goes on for so many bytes, and then both sides of it end', async () => {
  const chunk = new Uint8Array(2 ** 20)
  let isLetGo = false
  let ended = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(chunk),
    cancel() {
      isLetGo = true
    },
  })
  let bytes = 0
  for await (const piece of relayStream(body, { onEnd: () => (ended += 1) })) bytes += piece.length
  expect([bytes, isLetGo, ended]).toEqual([streamBytesMax, true, 1])
})

describe('a stream and its clocks', () => {
  afterEach(() => void jest.useRealTimers())

  /** An upstream that sends what it is told, relayed; the clock is moved by hand. */
  function relayed() {
    jest.useFakeTimers()
    const seen = { cancelled: 0, ended: 0, unwatched: 0 }
    const upstream = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>()
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => upstream.resolve(controller),
      cancel() {
        seen.cancelled += 1
      },
    })
    let endWith: ((lastWords: string) => void) | undefined
    const out = relayStream(body, {
      onEnd() {
        seen.ended += 1
      },
      watch(end) {
        endWith = end
        return () => {
          seen.unwatched += 1
        }
      },
    })
    return { seen, out, upstream: upstream.promise, end: (lastWords: string) => endWith?.(lastWords) }
  }
  /** What is under way goes on, and no time passes. */
  const settled = async () => {
    for (let i = 0; i < 50; i += 1) await Promise.resolve()
  }
  const over = (cancelled: number) => ({ cancelled, ended: 1, unwatched: 1 })
  const open = { cancelled: 0, ended: 0, unwatched: 0 }

  test('it ends without data, each piece giving it all of that time again', async () => {
    const { seen, out, upstream } = relayed()
    const reader = out.getReader()
    for (let i = 0; i < 3; i += 1) {
      const reading = reader.read()
      await settled()
      jest.advanceTimersByTime(streamIdleTimeoutMs - 1)
      ;(await upstream).enqueue(Buffer.from('a'))
      expect((await reading).done).toBe(false)
    }
    const last = reader.read()
    await settled()
    jest.advanceTimersByTime(streamIdleTimeoutMs - 1)
    expect(seen).toEqual(open)
    jest.advanceTimersByTime(1)
    expect((await last).done).toBe(true)
    expect([seen, jest.getTimerCount()]).toEqual([over(1), 0])
  })

  test('it ends after its lifetime, also where nobody reads it', async () => {
    const { seen, out } = relayed()
    jest.advanceTimersByTime(streamLifetimeMs - 1)
    expect(seen).toEqual(open)
    jest.advanceTimersByTime(1)
    expect([seen, await new Response(out).text(), jest.getTimerCount()]).toEqual([over(1), '', 0])
  })

  test('it ends with last words, or without any, and leaves no timer and nobody who watches', async () => {
    const ended = relayed()
    const reading = new Response(ended.out).text()
    ended.end('no more')
    expect([await reading, ended.seen, jest.getTimerCount()]).toEqual(['no more', over(1), 0])

    const left = relayed()
    await left.out.cancel()
    expect([left.seen, jest.getTimerCount()]).toEqual([over(1), 0])

    const closed = relayed()
    ;(await closed.upstream).close()
    expect([await new Response(closed.out).text(), closed.seen, jest.getTimerCount()]).toEqual(['', over(0), 0])

    const broken = relayed()
    const controller = await broken.upstream
    const soFar = new Response(broken.out).text()
    controller.enqueue(Buffer.from('so far'))
    await settled()
    controller.error(new Error('it is gone'))
    expect([await soFar, broken.seen, jest.getTimerCount()]).toEqual(['so far', over(0), 0])
  })

  test('messages are waited for so long, and then the server is late', async () => {
    jest.useFakeTimers()
    const taken: unknown[] = []
    const read = Promise.withResolvers<void>()
    let cancelledFor: unknown
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('data: 1\n\n')),
      cancel(reason) {
        cancelledFor = reason
      },
    })
    const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    let ended: unknown
    const take = (message: unknown) => {
      taken.push(message)
      read.resolve()
      return false
    }
    const timeoutMs = 90_000
    const all = readMessages(response, 1, { take, read: async (text) => JSON.parse(text), timeoutMs }).catch(
      (error) => {
        ended = error
      },
    )
    await read.promise
    await settled()
    jest.advanceTimersByTime(timeoutMs - 1)
    expect(ended).toBeUndefined()
    jest.advanceTimersByTime(1)
    await all
    expect(ended).toMatchObject({
      code: 'upstream_timeout',
      message: 'The MCP server is too slow: no response within 90 s',
    })
    expect([taken, cancelledFor]).toEqual([[1], ended])
    await settled()
    expect(jest.getTimerCount()).toBe(0)
  })
})

test('nothing is read of an upstream, and no piece made, before somebody asks for it', async () => {
  let pulled = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1
        controller.enqueue(Buffer.from('a'))
      },
    },
    { highWaterMark: 0 },
  )
  let ended = 0
  const relay = relayStream(body, { onEnd() {} })
  const pieces = piecesOf(Buffer.from('a'), () => (ended += 1))
  await new Promise((resolve) => setImmediate(resolve))
  expect([pulled, ended]).toEqual([0, 0])
  const reader = relay.getReader()
  await reader.read()
  await new Promise((resolve) => setImmediate(resolve))
  expect(pulled).toBe(1)
  await Promise.all([reader.cancel(), pieces.cancel()])
})

test('an event is rewritten up to its last byte, and past it the stream ends with what came before', async () => {
  const event = (bytes: number) => `data: ${'x'.repeat(bytes - 8)}\n\n`
  // In pieces of their own: what comes before an event does not count as it.
  const relay = async (...pieces: string[]) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(Buffer.from(piece))
        controller.close()
      },
    })
    return new Response(relayStream(body, { rewrite: async (data) => data, onEnd() {} })).text()
  }
  const [a, most, tooMuch] = ['data: a\n\n', event(streamEventBytesMax), event(streamEventBytesMax + 1)]
  expect(await relay(a, most, a)).toHaveLength(streamEventBytesMax + 2 * a.length)
  expect(await relay(most)).toHaveLength(streamEventBytesMax)
  expect(await relay(a, tooMuch, a)).toBe(a)
})

test('a message as an event says what it is, each of its lines as data', () => {
  expect(messageEvent('{"a":\n1}')).toBe('event: message\ndata: {"a":\ndata: 1}\n\n')
})

test('a large event that is rewritten counts for its owner, and what is held of it is given back at the end', async () => {
  const holder = { keyId: 'k', family: 'k' }
  let taken = 0
  let most = 0
  class Noted extends Shares {
    bytes = 0
    override take(_: typeof holder, amount: number) {
      if (taken + amount > this.bytes) return false
      taken += amount
      most = Math.max(most, taken)
      return true
    }
    override giveBack(_: typeof holder, amount: number) {
      taken -= amount
    }
  }
  const ownerOf = (bytes: number) => ({ holder, memory: Object.assign(new Noted(0), { bytes }) })
  const event = `data: "${'x'.repeat(300_000)}"\n\n`
  const relayed = (owner: ReturnType<typeof ownerOf>, text = event) =>
    new Response(
      relayStream(
        streamInPieces(text, () => 50_000),
        { rewrite: async (data) => data, owner, onEnd() {} },
      ),
    ).text()
  expect(await relayed(ownerOf(10_000_000))).toBe(event)
  expect(taken).toBe(0)
  expect(most).toBeGreaterThan(4 * 250_000)
  // Without room the stream ends before the event.
  expect(await relayed(ownerOf(500_000))).toBe('')
  expect(taken).toBe(0)
  // A client that leaves while an event is rewritten leaves nothing taken.
  const { promise: isRewriting, resolve: begun } = Promise.withResolvers<void>()
  const { promise: rewritten, resolve: goOn } = Promise.withResolvers<string>()
  const rewrite = async () => {
    begun()
    return rewritten
  }
  const owner = ownerOf(100_000_000)
  const left = relayStream(
    streamInPieces(event.repeat(4), () => 4 * event.length),
    { rewrite, owner, onEnd() {} },
  ).getReader()
  const reading = left.read().catch(() => {})
  await isRewriting
  expect(taken).toBeGreaterThan(0)
  await left.cancel()
  goOn('')
  await reading
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
  expect(taken).toBe(0)
  // Small ones are not counted.
  expect(await relayed(ownerOf(0), 'data: "x"\n\n'.repeat(10_000))).toHaveLength(11 * 10_000)
  expect(taken).toBe(0)
})

test('an event of very many short lines counts for its owner, also where postern reads it itself', async () => {
  const owner = { holder: { keyId: 'k', family: 'k', userId: 'u' }, memory: new Shares(64 * 2 ** 20) }
  const answer = (line: string) => responseOf('text/event-stream', `${`data: ${line}\n`.repeat(300_000)}\n`)
  const charactersOf = (line: string) =>
    readMessages(answer(line), 1, { take: () => false, read: async () => undefined, owner })
  // Two megabytes of text, and the lines of it take as much as five.
  expect(await charactersOf('x')).toBe(0)
  expect(await readMessages(answer('x'), 1, { take: () => false, read: async () => undefined })).toBeGreaterThan(0)
  expect(owner.memory.take(owner.holder, 16 * 2 ** 20)).toBe(true)
})

test('what is made of events counts for their owner too', async () => {
  const memory = new Shares(4 * 2 ** 20)
  const owner = { holder: { keyId: 'k', family: 'k', userId: 'u' }, memory }
  const relayed = (events: number) =>
    new Response(
      relayStream(new Blob(['data: x\n\n'.repeat(events)]).stream(), {
        rewrite: async () => 'y'.repeat(10_000),
        owner,
      }),
    ).text()
  expect(await relayed(5)).toHaveLength(5 * 10_008)
  // The stream ends where there is no memory for more.
  expect((await relayed(1000)).length).toBeLessThan(2 ** 20)
  expect(memory.take(owner.holder, 2 ** 20)).toBe(true)
})

test('pieces that waited for a slow client are rewritten in turns of their owner, and events take its time', async () => {
  const events = 40_000
  let [turns, spent] = [0, 0]
  const allowance = {
    async run<T>(work: Work<T>) {
      turns += 1
      await nextTurn()
      return drained(work)
    },
    spend(milliseconds: number) {
      spent += milliseconds
    },
  }
  const owner = { holder: { keyId: 'k', family: 'k', userId: 'u' }, memory: new Shares(64 * 2 ** 20), allowance }
  const relayed = (pieceBytes: number) => {
    const text = 'data:x\n\n'.repeat(events)
    return new Response(
      relayStream(
        streamInPieces(text, () => pieceBytes),
        { rewrite: async (data) => data, owner },
      ),
    ).text()
  }
  expect(await relayed(eventBytesAtOnce)).toHaveLength(9 * events)
  expect(turns).toBe(Math.ceil((8 * events) / eventBytesAtOnce))
  expect(spent).toBeWithin(100, 1000)
  turns = 0
  expect(await relayed(1000)).toHaveLength(9 * events)
  expect(turns).toBe(0)
})
