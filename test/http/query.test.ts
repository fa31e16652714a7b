/** Query strings, read strictly. */

import { expect, test } from 'bun:test'
import { queryParametersMax, readQuery, refuseManyParameters, refuseQuery } from '../../src/http/query.ts'

const pairs = (query: string) => [...readQuery(`http://a/x${query}`)]

test('names and values are decoded once, and come in their order', () => {
  const rows: [query: string, read: [string, string][]][] = [
    ['', []],
    ['?', []],
    ['?&&', []],
    [
      '?a=1&b=2',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    [
      '?b=2&a=1',
      [
        ['b', '2'],
        ['a', '1'],
      ],
    ],
    ['?a', [['a', '']]],
    ['?a=', [['a', '']]],
    ['?=x', [['', 'x']]],
    ['?a=b=c', [['a', 'b=c']]],
    ['?a+b=c+d', [['a b', 'c d']]],
    ['?%61=%2B%26%3D', [['a', '+&=']]],
    ['?a=%2561', [['a', '%61']]],
    ['?a=%C3%A9', [['a', 'é']]],
    ['?a=x?y', [['a', 'x?y']]],
  ]
  for (const [query, read] of rows) expect({ query, read: pairs(query) }).toEqual({ query, read })
})

test('what could be read in two ways is refused', () => {
  const rows: [query: string, message: string][] = [
    ['?a=1&a=2', 'a: is given twice'],
    ['?a=1&%61=2', 'a: is given twice'],
    ['?a&a', 'a: is given twice'],
    ['?=1&=2', ': is given twice'],
    ['?a=1#b', 'the query has an unescaped "#": write it as %23'],
    ['?a=%', '%: is not percent-encoded UTF-8'],
    ['?%zz=1', '%zz: is not percent-encoded UTF-8'],
    ['?a=%C3', '%C3: is not percent-encoded UTF-8'],
    ['?a=%EF%BF%BD', 'is not percent-encoded UTF-8'],
  ]
  for (const [query, message] of rows) expect(() => pairs(query), query).toThrow(message)
})

test('of a text that cannot be read the beginning is told', () => {
  const text = `%zz${'x'.repeat(97)}`
  for (const query of [`?${text}`, `?${text}y`, `?${text}${'y'.repeat(1000)}`])
    expect(() => pairs(query)).toThrow(new Error(`${text}: is not percent-encoded UTF-8`))
})

test('more parameters than any operation has are refused before they are read', () => {
  const query = (count: number) => `http://here/a?${Array.from({ length: count }, () => 'a').join('&')}`
  for (const url of ['http://here/a', 'http://here/a?', query(queryParametersMax)]) refuseManyParameters(url)
  for (const count of [queryParametersMax + 1, 7500])
    expect(() => refuseManyParameters(query(count))).toThrow(`the query has more than ${queryParametersMax} parameters`)
})

test('an operation without parameters takes none', () => {
  for (const query of ['', '?', '?&']) refuseQuery(`http://a/x${query}`)
  expect(() => refuseQuery('http://a/x?b=1')).toThrow('b: unknown parameter; this operation takes none')
  expect(() => refuseQuery('http://a/x?=1')).toThrow(': unknown parameter; this operation takes none')
})
