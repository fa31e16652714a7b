/** What is written of a request, and kept of a response. */

import { expect, test } from 'bun:test'
import { socketIdleMs, upstreamHeadBytesMax } from '../../src/limits.ts'
import { headersOf, keepMsOf, wireRequest } from '../../src/upstream/head.ts'

const request = (headers: Record<string, string>, body?: Uint8Array | string) =>
  wireRequest({ method: 'POST', path: '/mcp?a=1', host: 'example.com', headers, body })

test('a request says where it goes, that nothing is unpacked, and how long its body is', () => {
  expect(request({ accept: 'a', 'accept-encoding': 'gzip', 'x-b': 'é' }, 'é')).toEqual({
    method: 'POST',
    path: '/mcp?a=1',
    fields: ['host', 'example.com', 'accept-encoding', 'identity', 'accept', 'a', 'x-b', 'é', 'content-length', '2'],
    content: Buffer.from('é'),
  })
  expect(request({}).fields).toEqual(['host', 'example.com', 'accept-encoding', 'identity'])
  expect(request({}, '').fields.slice(-2)).toEqual(['content-length', '0'])
  expect(request({}, new Uint8Array(3)).fields.slice(-2)).toEqual(['content-length', '3'])
})

test('a header that could end its line, or the head, is not sent', () => {
  for (const value of ['a\r\nb: c', 'a\nb', 'a\0', '\x7f', 'a\u0100'])
    expect(() => request({ a: value })).toThrow('a cannot be sent')
  for (const name of ['', 'a b', 'a:', 'a\r\n', 'é']) expect(() => request({ [name]: '1' })).toThrow('cannot be sent')
  expect(request({ a: '\t ~\x80ÿ' }).fields.slice(-2)).toEqual(['a', '\t ~\x80ÿ'])
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
