/** Schemas as the console's forms read them. */

import { describe, expect, test } from 'bun:test'
import {
  firstValue,
  kindOf,
  type Schema,
  variantOf,
  variantsOf,
  whole,
  withoutSecrets,
  wrongWith,
} from '../../src/console/form/form-schema.ts'
import { parseJson } from '../../src/console/json.ts'

describe('a schema in one piece', () => {
  const root: Schema = {
    $defs: {
      node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } },
      'a/b': { type: 'integer' },
      loop: { $ref: '#/$defs/loop' },
    },
    definitions: { old: { type: 'boolean' } },
  }

  test('references into the document are followed, and what they name is overridden beside them', () => {
    expect(kindOf(whole({ $ref: '#/$defs/a~1b' }, root))).toBe('integer')
    expect(whole({ $ref: '#/definitions/old', title: 'Old' }, root)).toEqual({ type: 'boolean', title: 'Old' })
  })

  test('a reference to itself, to nothing or elsewhere is a value of any kind', () => {
    for (const $ref of [
      '#/$defs/loop',
      '#/$defs/nothing',
      'https://evil.example/schema',
      '#/__proto__/x',
      '#/$defs/constructor',
    ])
      expect(kindOf(whole({ $ref }, root))).toBe('json')
  })

  test('parts of allOf are joined', () => {
    const parts = [
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { properties: { b: { $ref: '#/$defs/a~1b' } }, required: ['b'] },
    ]
    const joined = whole({ allOf: parts }, root)
    expect(Object.keys(joined.properties ?? {})).toEqual(['a', 'b'])
    expect(joined.required).toEqual(['a', 'b'])
  })

  test('keywords of another shape say nothing', () => {
    const odd = {
      title: 5,
      description: {},
      enum: 5,
      allOf: 5,
      required: 5,
      examples: {},
      anyOf: 'x',
      type: 7,
      items: 1,
    }
    const schema = whole({ ...odd, properties: { a: null, b: { type: 'string' } } } as unknown as Schema, root)
    expect(schema).toEqual({ properties: { b: { type: 'string' } } })
    expect(kindOf(schema)).toBe('object')
  })

  test('many parts of many parts end', () => {
    const many: Schema = { allOf: Array.from({ length: 50 }, () => ({ $ref: '#' })) }
    expect(kindOf(whole(many, many))).toBe('json')
  })
})

describe('values', () => {
  const schema: Schema = {
    type: 'object',
    required: ['kind', 'address', 'name'],
    properties: {
      kind: { const: 'person' },
      name: { type: 'string' },
      days: { type: 'integer', default: 3 },
      address: { type: 'object', properties: { street: { type: 'string' }, country: { default: 'NO' } } },
      more: { type: 'object', properties: { x: { type: 'string' } } },
      deep: { type: 'object', properties: { x: { default: 1 } } },
    },
  }

  test('the first has defaults, and objects that are required', () => {
    expect(firstValue(schema, schema, true)).toEqual({
      ...{ kind: 'person', days: 3, address: { country: 'NO' }, deep: { x: 1 } },
    })
  })

  test('the first of a schema that leads to itself in many ways is found soon', () => {
    const names = Array.from({ length: 20 }, (_, index) => `m${index}`)
    const node = {
      type: 'object',
      required: names,
      properties: Object.fromEntries(names.map((one) => [one, { $ref: '#' }])),
    }
    let visited = 0
    const counted = new Proxy(node as Schema, {
      get(target, name) {
        if (name === 'default') visited += 1
        return Reflect.get(target, name)
      },
    })
    firstValue(counted, counted, true)
    expect(visited).toBeLessThan(5000)
  })

  test('a list of types is a choice, and null is none of it', () => {
    expect(variantsOf({ type: ['string', 'number', 'null'] }).map(kindOf)).toEqual(['string', 'number'])
    expect(variantsOf({ type: ['string', 'null'] })).toEqual([])
  })

  test('the variant is the first that the value may be of', () => {
    const variants: Schema[] = [
      { type: 'string' },
      { properties: { kind: { const: 'a' } } },
      { properties: { kind: { const: 'b' } } },
      { type: 'array' },
    ]
    const indexes = ['x', { kind: 'b' }, { kind: 'a' }, [], 7].map((value) => variantOf(value, variants, {}))
    expect(indexes).toEqual([0, 2, 1, 3, 0])
  })

  test('only what is certain is wrong', () => {
    const cases: [Schema, unknown, boolean, string | undefined][] = [
      [{ type: 'string' }, undefined, true, 'is required'],
      [{ type: 'string' }, undefined, false, undefined],
      [{ type: 'string', minLength: 2 }, '😀', false, 'must have at least 2 characters'],
      [{ type: 'string', maxLength: 1 }, '😀', false, undefined],
      [{ type: 'string', pattern: '^(a+)+$' }, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', false, undefined],
      [{ type: 'integer' }, 1.5, false, 'must be a whole number'],
      [{ type: 'number', minimum: 1 }, 0, false, 'must be at least 1'],
      [{ type: 'number', exclusiveMaximum: 1 }, 1, false, 'must be less than 1'],
      [{ type: 'number', multipleOf: 0.1 }, 0.3, false, undefined],
    ]
    for (const [one, value, isRequired, wrong] of cases) expect(wrongWith(one, value, isRequired)).toBe(wrong)
  })

  test('numbers keep their digits', () => {
    const text = '{"id":9007199254740993,"price":0.10000000000000000001,"small":3,"list":[12345678901234567890]}'
    expect(JSON.stringify(parseJson(text))).toBe(text)
  })

  test('secrets are left out where a variant or a pattern of names may be one', () => {
    const secret: Schema = { type: 'string', format: 'password', writeOnly: true }
    const optional: Schema = { anyOf: [{ oneOf: [secret] }, { type: 'null' }] }
    const root: Schema = {
      properties: { token: optional, all: { items: optional }, open: { patternProperties: { '^x': secret } } },
    }
    const value = { token: 'hush', all: ['hush'], open: { x1: 'hush' }, kept: 1 }
    expect(JSON.stringify(withoutSecrets(value, root, root))).toBe('{"all":[null],"open":{},"kept":1}')
  })

  test('secrets are left out at every depth, in variants too', () => {
    const secret: Schema = { type: 'string', format: 'password' }
    const root: Schema = {
      properties: {
        password: secret,
        login: { properties: { user: {}, pin: { writeOnly: true } } },
        all: { items: { properties: { password: { $ref: '#/$defs/secret' } } } },
        one: { anyOf: [{ type: 'string' }, { properties: { password: secret } }] },
      },
      $defs: { secret },
    }
    const value = {
      ...{ password: 'p', login: { user: 'u', pin: 1 }, all: [{ password: 'q', x: 1 }], one: { password: 'r', y: 2 } },
    }
    expect(JSON.stringify(withoutSecrets(value, root, root))).toBe(
      '{"login":{"user":"u"},"all":[{"x":1}],"one":{"y":2}}',
    )
  })
})
