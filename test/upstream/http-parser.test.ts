/** The runtime's undocumented parser parses as we know it: a build with another runtime fails here. */

import { expect, test } from 'bun:test'
import { httpParser } from '../../src/upstream/response-parser.ts'

const Parser = httpParser()
const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'

test('the parser of the runtime reads a response that is split within its body', () => {
  const seen: unknown[] = []
  const parser = new Parser()
  parser.initialize(Parser.RESPONSE, {})
  parser[Parser.kOnMessageBegin] = () => seen.push('begin')
  parser[Parser.kOnHeadersComplete] = (version, _, headers, __, ___, status, ____, isUpgrade, keepsAlive) => {
    seen.push(version, ...(headers ?? []), status, isUpgrade, keepsAlive)
    return 0
  }
  parser[Parser.kOnBody] = (chunk) => seen.push(chunk.toString())
  parser[Parser.kOnMessageComplete] = () => seen.push('end')
  expect([`${head}\r\no`, 'k'].map((part) => parser.execute(Buffer.from(part)))).toEqual([head.length + 3, 1])
  expect(seen).toEqual(['begin', 1, 'Content-Length', '2', 200, false, true, 'o', 'k', 'end'])
})

test('the parser of the runtime refuses a response with two lengths', () => {
  const parser = new Parser()
  parser.initialize(Parser.RESPONSE, {})
  expect(parser.execute(Buffer.from(`${head}content-length: 3\r\n\r\n`))).toBeInstanceOf(Error)
})
