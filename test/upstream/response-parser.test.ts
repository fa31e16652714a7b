/** The framing of a chunked body is bounded, and ordinary chunks are none of what is counted. */

import { expect, test } from 'bun:test'
import { emptyChunkBytesMax, ResponseParser } from '../../src/upstream/response-parser.ts'

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const pieceBytes = 16 * 1024

/** Reads the same chunk again and again, in pieces, until it is refused. Returns the bytes read, or Infinity. */
function readUntilRefused(chunk: string): number {
  const parser = new ResponseParser({ onHead() {}, onData() {} })
  parser.restart()
  expect(parser.read(Buffer.from(head))).toBe('partial')
  const piece = Buffer.from(chunk.repeat(Math.ceil(pieceBytes / chunk.length)))
  for (let bytes = piece.length; bytes < 64 * emptyChunkBytesMax; bytes += piece.length) {
    const read = parser.read(piece)
    if (read === 'partial') continue
    expect(read).toEqual(new Error('it sends too many bytes without content'))
    return bytes
  }
  return Number.POSITIVE_INFINITY
}

test('extensions of chunks and zeros before their sizes are refused when they are more than the body', () => {
  for (const chunk of [
    `1;${'x'.repeat(1000)}\r\n:\r\n`,
    `1;${'x'.repeat(50)}\r\n:\r\n`,
    `${'0'.repeat(15)}1\r\n:\r\n`,
  ]) {
    const bytes = readUntilRefused(chunk)
    expect(bytes).toBeGreaterThan(emptyChunkBytesMax)
    expect(bytes).toBeLessThan(4 * emptyChunkBytesMax)
  }
})

test('chunks of any length are not, down to one byte, nor with an extension of some bytes', () => {
  for (const chunk of ['1\r\n:\r\n', '1;a=b\r\n:\r\n', '10;name="value"\r\n0123456789abcdef\r\n'])
    expect(readUntilRefused(chunk)).toBe(Number.POSITIVE_INFINITY)
})

test('trailers without end are refused', () => {
  const parser = new ResponseParser({ onHead() {}, onData() {} })
  parser.restart()
  parser.read(Buffer.from(`${head}2\r\nok\r\n0\r\n`))
  const trailers = Buffer.from('X-A: b\r\n'.repeat(1000))
  let read: unknown = 'partial'
  for (let piece = 0; piece < 100 && read === 'partial'; piece += 1) read = parser.read(trailers)
  expect(read).toBeInstanceOf(Error)
})

test('the next response begins with nothing counted', () => {
  const parser = new ResponseParser({ onHead() {}, onData() {} })
  const padded = `${head}1;${'x'.repeat(emptyChunkBytesMax * 0.2)}\r\n:\r\n0\r\n\r\n`
  for (let response = 0; response < 10; response += 1) {
    parser.restart()
    expect(parser.read(Buffer.from(head))).toBe('partial')
    expect(parser.read(Buffer.from(padded.slice(head.length)))).toBe('whole')
  }
})
