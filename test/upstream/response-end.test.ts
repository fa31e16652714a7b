/** Whether the end of a response was the last thing that came, byte by byte. */

import { expect, test } from 'bun:test'
import { upstreamHeadBytesMax } from '../../src/limits.ts'
import { createResponseEnd } from '../../src/upstream/response-end.ts'

const plainHead = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n'
const chunkedHead = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** Is the response the last that came, where it comes in pieces of so many bytes? `heads`: before the body. */
function isLast(heads: readonly string[], body: string, headers: Record<string, string>, size: number, status = 200) {
  const end = createResponseEnd()
  end.begin()
  const add = (text: string) => {
    for (let at = 0; at < text.length; at += size) end.add(Buffer.from(text.slice(at, at + size), 'latin1'))
  }
  for (const [index, head] of heads.entries()) {
    add(head)
    end.endHead(index < heads.length - 1)
  }
  add(body)
  return end.isLast(status, headers)
}
const plain = (body: string, size: number, status?: number) =>
  isLast([plainHead], body, { 'content-length': '5' }, size, status)
const chunked = (body: string, size: number) => isLast([chunkedHead], body, { 'transfer-encoding': 'chunked' }, size)

for (const size of [1, 2, 3, 4, 5, 7, 1000]) {
  test(`in pieces of ${size}`, () => {
    expect([plain('hello', size), plain('hell', size), plain('hello!', size)]).toEqual([true, false, false])
    expect([plain('', size, 304), plain('', size, 204), plain('x', size, 304)]).toEqual([true, true, false])
    expect(chunked('5\r\nhello\r\n0\r\n\r\n', size)).toBe(true)
    expect(chunked('5\r\nhello\r\n0\r\n\r\nx', size)).toBe(false)
    expect(chunked('5\r\nhello\r\n0\r\na: b\r\n\r\n', size)).toBe(true)
    const early = 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'
    expect(isLast([early, plainHead], 'hello', { 'content-length': '5' }, size)).toBe(true)
    expect(isLast([early, plainHead], 'hello\r\n', { 'content-length': '5' }, size)).toBe(false)
  })
}

test('the next exchange begins anew', () => {
  const end = createResponseEnd()
  for (const length of [5, 3]) {
    end.begin()
    end.add(Buffer.from(`${plainHead}${'x'.repeat(length)}`))
    end.endHead(false)
    expect(end.isLast(200, { 'content-length': String(length) })).toBe(true)
  }
})

test('a head that does not end is too long past its bound, a body is not', () => {
  const end = createResponseEnd()
  end.begin()
  end.add(Buffer.alloc(upstreamHeadBytesMax, 'x'))
  expect(end.isTooLong()).toBe(false)
  end.add(Buffer.alloc(1, 'x'))
  expect(end.isTooLong()).toBe(true)
  end.begin()
  end.add(Buffer.from(plainHead))
  end.endHead(false)
  end.add(Buffer.alloc(upstreamHeadBytesMax + 1, 'x'))
  expect(end.isTooLong()).toBe(false)
})

test('a length is a number of ten figures to each place', () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n'
  const of = (body: string) => isLast([head], body, { 'content-length': '12' }, 1000)
  expect([of('x'.repeat(12)), of('x'.repeat(13)), of('x'.repeat(11))]).toEqual([true, false, false])
})

test('a head that did not end leaves nothing to the next exchange', () => {
  const end = createResponseEnd()
  end.begin()
  end.add(Buffer.from('HTTP/1.1 200 OK\r\nx: y'))
  end.begin()
  expect(end.isTooLong()).toBe(false)
  end.add(Buffer.from(`${plainHead}hello`))
  end.endHead(false)
  expect(end.isLast(200, { 'content-length': '5' })).toBe(true)
  end.add(Buffer.from('\r\n\r\n'))
  expect(end.isLast(200, { 'transfer-encoding': 'chunked' })).toBe(true)
  end.begin()
  expect(end.isLast(200, { 'transfer-encoding': 'chunked' })).toBe(false)
})
