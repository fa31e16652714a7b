import { expect, test } from 'bun:test'
import { Shares } from '../../src/fairness/shares.ts'
import { ByteBuffer, readAhead } from '../../src/upstream/byte-buffer.ts'
import { random } from '../support/random.ts'

const holder = { keyId: 'key', family: 'key' }
const bytes = (text: string) => Buffer.from(text)

test('chunks come out joined, and what they took is given back', () => {
  const pile = new ByteBuffer(new Shares(64), holder)
  for (let round = 0; round < 5; round += 1) {
    for (const letter of 'abcdefghijklmnop') expect(pile.add(bytes(letter))).toBe(true)
    expect(pile.length).toBe(16)
    expect(pile.add(bytes('q'))).toBe(false)
    expect(Buffer.from(pile.take() ?? []).toString()).toBe('abcdefghijklmnop')
    expect([pile.length, pile.take()]).toEqual([0, undefined])
  }
})

test('one chunk is given whole', () => {
  const pile = new ByteBuffer(new Shares(1000), holder)
  const chunk = bytes('whole')
  pile.add(chunk)
  expect(pile.take()).toEqual(new Uint8Array(chunk))
})

test('what is expected is taken at once, and copied once', () => {
  const memory = new Shares(4 * 10)
  const pile = new ByteBuffer(memory, holder)
  expect(pile.expect(11)).toBe(false)
  expect(pile.expect(10)).toBe(true)
  expect(memory.take(holder, 1)).toBe(false)
  for (const part of ['abc', 'defg', 'hij']) expect(pile.add(bytes(part))).toBe(true)
  expect(pile.add(bytes('k'))).toBe(false)
  const whole = pile.take()
  expect([Buffer.from(whole ?? []).toString(), whole?.buffer.byteLength]).toEqual(['abcdefghij', 10])
  expect(memory.take(holder, 10)).toBe(true)
})

test('any chunks come out as they came in, with an announced length or without', () => {
  const chance = random(7)
  for (let round = 0; round < 200; round += 1) {
    const chunks = Array.from({ length: chance.int(12) }, () =>
      Buffer.alloc(chance.int(3) * chance.int(400_000), chance.int(256)),
    )
    const whole = Buffer.concat(chunks)
    const memory = new Shares(2 ** 30)
    const pile = new ByteBuffer(memory, holder)
    if (round % 2 === 0) pile.expect(whole.length + chance.int(3) * chance.int(1000))
    for (const chunk of chunks) pile.add(chunk)
    expect(pile.length).toBe(whole.length)
    if (chance.chance(0.25)) pile.discard()
    else expect(whole.equals(pile.take() ?? new Uint8Array(0))).toBe(true)
    expect(pile.length).toBe(0)
    expect(memory.take(holder, 2 ** 28)).toBe(true)
  }
})

test('a million chunks of a byte take about as much memory as their bytes', () => {
  const pile = new ByteBuffer(new Shares(2 ** 30), holder)
  Bun.gc(true)
  const before = process.memoryUsage().rss
  for (let i = 0; i < 4_000_000; i += 1) pile.add(Buffer.alloc(1))
  Bun.gc(true)
  // 79 bytes a byte, 316 MB in all, where each chunk was kept. What the rest of the process does counts too.
  expect(process.memoryUsage().rss - before).toBeLessThan(220 * 2 ** 20)
  expect(pile.take()?.length).toBe(4_000_000)
})

test('a reader that waits gets chunks as they come, one that is behind gets them in pieces', async () => {
  const pile = new ByteBuffer(new Shares(1000), holder)
  const { readable, give, end } = readAhead(pile, () => {})
  const reader = readable.getReader()
  const read = async () => Buffer.from((await reader.read()).value ?? []).toString()
  const waiting = read()
  await new Promise(setImmediate)
  expect(give(bytes('first'))).toBe(true)
  expect(await waiting).toBe('first')
  expect(give(bytes('second'))).toBe(false)
  for (const text of ['second', 'third']) pile.add(bytes(text))
  expect([await read(), await read()]).toEqual(['second', 'third'])
  pile.add(bytes('last'))
  end()
  expect(await read()).toBe('last')
  expect((await reader.read()).done).toBe(true)
})

test('a stream that fails says so to a reader that waits, and one that is cancelled to whoever writes', async () => {
  const failing = readAhead(new ByteBuffer(new Shares(1000), holder), () => {})
  const reading = failing.readable.getReader().read()
  await new Promise(setImmediate)
  failing.end(new Error('broken off'))
  await expect(reading).rejects.toThrow('broken off')
  let isCancelled = false
  const cancelled = readAhead(new ByteBuffer(new Shares(1000), holder), () => {
    isCancelled = true
  })
  await cancelled.readable.cancel()
  expect([isCancelled, cancelled.give(bytes('x'))]).toEqual([true, false])
})

test('a stream that ends while its reader waits is over, and what fails later changes nothing', async () => {
  const pile = new ByteBuffer(new Shares(1000), holder)
  const { readable, give, end } = readAhead(pile, () => {})
  const reader = readable.getReader()
  const waiting = reader.read()
  await new Promise(setImmediate)
  end()
  expect(await waiting).toEqual({ done: true, value: undefined })
  end(new Error('too late'))
  await reader.closed
  expect(give(bytes('x'))).toBe(false)
})

test('a reader that waits and then leaves is given nothing more, and the writer is told once', async () => {
  const pile = new ByteBuffer(new Shares(1000), holder)
  let cancels = 0
  const { readable, give, end } = readAhead(pile, () => {
    cancels += 1
    // As whoever writes does.
    end(new Error('nobody reads on'))
  })
  const reader = readable.getReader()
  const waiting = reader.read()
  await new Promise(setImmediate)
  await reader.cancel()
  expect(await waiting).toEqual({ done: true, value: undefined })
  expect([cancels, give(bytes('x'))]).toEqual([1, false])
})

test('a stream that has failed takes nothing more, though its reader is behind', async () => {
  const pile = new ByteBuffer(new Shares(1000), holder)
  const { readable, give, end } = readAhead(pile, () => {})
  const reader = readable.getReader()
  const waiting = reader.read()
  await new Promise(setImmediate)
  give(bytes('first'))
  expect(Buffer.from((await waiting).value ?? []).toString()).toBe('first')
  pile.add(bytes('second'))
  end(new Error('broken off'))
  await expect(reader.read()).rejects.toThrow('broken off')
  end(new Error('again'))
  await expect(reader.read()).rejects.toThrow('broken off')
  expect([give(bytes('x')), pile.length]).toEqual([false, 6])
})

test('a single byte is given back too', () => {
  const pile = new ByteBuffer(new Shares(4), holder)
  for (let round = 0; round < 3; round += 1) {
    expect([pile.add(bytes('a')), pile.add(bytes('b')), pile.take()?.length]).toEqual([true, false, 1])
  }
})

test('a share that is used up to its last byte is full', () => {
  // A quarter is one token's share.
  const pile = new ByteBuffer(new Shares(40), holder)
  expect([pile.add(bytes('0123456789')), pile.add(Buffer.alloc(0)), pile.add(bytes('x'))]).toEqual([true, true, false])
  expect(pile.take()).toHaveLength(10)
  expect([pile.add(bytes('01234567890')), pile.length, pile.take()]).toEqual([false, 0, undefined])
})

test('a reader that is behind gets few bytes at once, and only those are no longer counted', async () => {
  const megabyte = 2 ** 20
  const memory = new Shares(4 * (megabyte + 32 * 1024))
  const pile = new ByteBuffer(memory, holder)
  const { readable } = readAhead(pile, () => {})
  const reader = readable.getReader()
  const whole = random(3)
  const sent = Buffer.from(Array.from({ length: megabyte }, () => whole.int(256)))
  for (let at = 0; at < megabyte; at += 10_000) expect(pile.add(sent.subarray(at, at + 10_000))).toBe(true)
  expect(memory.take(holder, 64 * 1024)).toBe(false)
  let got = 0
  while (got < megabyte) {
    const { value = new Uint8Array(0) } = await reader.read()
    expect(value.length).toBeLessThanOrEqual(16 * 1024)
    expect(sent.subarray(got, got + value.length).equals(value)).toBe(true)
    got += value.length
  }
  expect(memory.take(holder, megabyte)).toBe(true)
})

test('a part of what was received at once keeps none of the rest', async () => {
  const received = Buffer.from(new ArrayBuffer(512 * 1024))
  const pile = new ByteBuffer(new Shares(2 ** 20), holder)
  pile.add(received.subarray(0, 1000))
  expect(pile.take()?.buffer.byteLength).toBe(1000)
  const { readable, give } = readAhead(pile, () => {})
  const reading = readable.getReader().read()
  await new Promise(setImmediate)
  give(received.subarray(0, 1000))
  expect((await reading).value?.buffer.byteLength).toBe(1000)
})
