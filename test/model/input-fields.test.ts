/** A schema as the fields of a form (contract, 14.10). */

import { describe, expect, test } from 'bun:test'
import { defaultsFor, inputRequired, readInputFields, withInput } from '../../src/model/input-fields.ts'

const fieldsOf = (properties: object, required: readonly string[] = []) => {
  const read = readInputFields({ type: 'object', properties, required })
  if ('problem' in read) throw new Error(read.problem)
  return read.fields
}

describe('a field', () => {
  const secrets: [property: string, part: object, isSecret: boolean][] = [
    ['plain', {}, false],
    ['plain', { format: 'password' }, true],
    ['plain', { writeOnly: true }, true],
    ...['apiKey', 'TOKEN', 'client_secret', 'dbPassword'].map((name): [string, object, boolean] => [name, {}, true]),
    ['auth', { 'x-from': { header: 'Authorization' } }, true],
    ['apiKey', { 'x-from': { header: 'X-Plain' } }, true],
  ]
  for (const [property, part, isSecret] of secrets)
    test(`${property} ${JSON.stringify(part)} is ${isSecret ? '' : 'not '}secret`, () =>
      expect(fieldsOf({ [property]: part })[0]?.isSecret).toBe(isSecret))

  const kinds: [part: object | boolean, kind: string | undefined][] = [
    [{}, 'text'],
    [true, 'text'],
    [{ type: 'string' }, 'text'],
    [{ type: ['null', 'integer'] }, 'number'],
    [{ type: 'number' }, 'number'],
    [{ type: 'boolean' }, 'checkbox'],
    [{ enum: ['a', 1] }, 'select'],
    [{ const: 'a' }, 'select'],
    [{ type: 'object' }, undefined],
    [{ type: ['array', 'null'] }, undefined],
  ]
  for (const [part, kind] of kinds)
    test(`${JSON.stringify(part)} is ${kind ?? 'left out'}`, () =>
      expect(fieldsOf({ a: part })[0]?.kind).toBe(kind as never))
})

test('an option that is there twice is one', () =>
  expect(fieldsOf({ a: { enum: [1, '1', 1, 'b', null, 'b'] } })[0]?.options).toEqual([1, '1', 'b']))

test('what a URL and the headers of a connection have is not asked for, and wins', () => {
  const fields = fieldsOf({ a: {}, b: { default: 2 }, c: { 'x-from': { header: 'X-C' } } }, ['a', 'b', 'c'])
  const own = { url: 'https://a.example/mcp?a=1#part', headers: { 'x-c': 'own' } }
  expect(inputRequired(fields, own)?.missing).toEqual({ headers: [], query: ['b'] })
  expect(defaultsFor(fields, own)).toEqual({ headers: {}, query: { b: '2' } })
  const entered = { headers: { 'X-C': 'other', 'X-D': 'd' }, query: { a: '2', b: 'x y' } }
  expect(withInput(own.url, own.headers, entered)).toEqual({
    url: 'https://a.example/mcp?a=1&b=x+y',
    headers: { 'x-c': 'own', 'X-D': 'd' },
  })
  expect(withInput(null, {}, entered).url).toBe('')
})
