/** What is written of a request, and kept of a response. */

import { expect, test } from 'bun:test'
import { socketIdleMs, upstreamHeadBytesMax } from '../../src/limits.ts'
import { headersOf, keepMsOf, wireRequest } from '../../src/upstream/head.ts'

const request = (headers: Record<string, string>, body?: Uint8Array | string) =>
  wireRequest({ method: 'POST', path: '/mcp?a=1', host: 'example.com', headers, via: '1.1 us', body }).toString(
    'latin1',
  )

test('a request says where it goes, that nothing is unpacked, and how long its body is', () => {
  const head = 'POST /mcp?a=1 HTTP/1.1\r\nhost: example.com\r\naccept-encoding: identity\r\n'
  expect(request({ accept: 'a', 'accept-encoding': 'gzip', 'x-b': 'é', via: 'another' }, 'é')).toBe(
    `${head}accept: a\r\nx-b: é\r\nvia: 1.1 us\r\ncontent-length: 2\r\n\r\n${Buffer.from('é').toString('latin1')}`,
  )
  expect(request({})).toBe(`${head}via: 1.1 us\r\n\r\n`)
  expect(request({}, '')).toBe(`${head}via: 1.1 us\r\ncontent-length: 0\r\n\r\n`)
  expect(request({}, new Uint8Array(3))).toBe(`${head}via: 1.1 us\r\ncontent-length: 3\r\n\r\n\0\0\0`)
})

test('a header that could end its line, or the head, is not sent', () => {
  for (const value of ['a\r\nb: c', 'a\nb', 'a\0', '\x7f', 'a\u0100'])
    expect(() => request({ a: value })).toThrow('a cannot be sent')
  for (const name of ['', 'a b', 'a:', 'a\r\n', 'é']) expect(() => request({ [name]: '1' })).toThrow('cannot be sent')
  expect(request({ a: '\t ~\x80ÿ' })).toContain('\r\na: \t ~\x80ÿ\r\n')
})

test('headers are kept in small letters, and those that come twice as a list', () => {
  expect({ ...headersOf(['Content-Type', 'a', 'X-B', '1', 'x-b', '2', 'X-B', '3']) }).toEqual({
    'content-type': 'a',
    'x-b': '1, 2, 3',
  })
  expect(Object.keys(headersOf([]))).toEqual([])
  // No name means more than it says.
  expect(Object.entries(headersOf(['__proto__', 'a']))).toEqual([['__proto__', 'a']])
  expect(headersOf([])['constructor']).toBeUndefined()
})

test('a head of many small headers is too long like one of a large one', () => {
  const many = Array.from({ length: upstreamHeadBytesMax / 8 }, () => ['name', 'four']).flat()
  expect(headersOf(many)['name']).toStartWith('four, four')
  expect(() => headersOf([...many, 'a', ''])).toThrow('its head is too long')
  expect(() => headersOf(['a', 'x'.repeat(upstreamHeadBytesMax)])).toThrow('its head is too long')
  expect(headersOf(['a', 'x'.repeat(upstreamHeadBytesMax - 1)])['a']?.length).toBe(upstreamHeadBytesMax - 1)
})

test('a socket is kept a second less than the server says, and never longer than by ourselves', () => {
  const rows: [hint: string | undefined, ms: number][] = [
    [undefined, socketIdleMs],
    ['max=5', socketIdleMs],
    ['timeout=5', 4000],
    ['timeout=3, max=100', 2000],
    ['max=100, Timeout=2', 1000],
    ['timeout=1', 0],
    ['timeout=9999', socketIdleMs],
    ['timeout=x', socketIdleMs],
    ['mytimeout=1', socketIdleMs],
  ]
  for (const [hint, ms] of rows) {
    const headers: Record<string, string> = hint === undefined ? {} : { 'keep-alive': hint }
    expect({ hint, ms: keepMsOf(headers) }).toEqual({ hint, ms })
  }
})
