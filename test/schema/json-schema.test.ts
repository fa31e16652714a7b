/** Schemas of others: what they may cost, to read and to hold a value to. */

import { describe, expect, test } from 'bun:test'
import { schemaStepsMax } from '../../src/limits.ts'
import { mockPatternCostMax } from '../../src/schema/evaluation.ts'
import { formatCharsMax } from '../../src/schema/formats.ts'
import { checkOf, readingSchema, schemaSizeMax } from '../../src/schema/json-schema.ts'
import type { JsonSchema } from '../../src/schema/schema-keywords.ts'

const times = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))
const named = <T>(count: number, make: (index: number) => T) =>
  Object.fromEntries(times(count, (index) => [`p${index}`, make(index)]))

/** Schemas in one another, of so many levels. */
const chain = (levels: number, keyword: string): JsonSchema =>
  levels === 0 ? {} : { [keyword]: chain(levels - 1, keyword) }

describe('a schema is counted while it is read', () => {
  const large: [what: string, schema: JsonSchema][] = [
    ['properties', { properties: named(schemaSizeMax, () => ({ type: 'string' })) }],
    ['names that are required', { required: times(schemaSizeMax, (index) => `p${index}`) }],
    ['names in lists of dependencies', { dependencies: { a: times(schemaSizeMax, () => 'a') } }],
    ['names that depend', { dependentRequired: named(schemaSizeMax / 2, () => ['a']) }],
    ['alternatives', { anyOf: times(schemaSizeMax, () => true) }],
    ['values', { enum: times(schemaSizeMax, (index) => index) }],
    ['what a value has within', { const: { a: times(schemaSizeMax, (index) => [index]) } }],
    ['definitions', { $defs: named(schemaSizeMax / 2, () => ({ type: 'string' })) }],
    ['a long reference', { $ref: `#${'/%'.repeat(25 * schemaSizeMax)}` }],
    ['long names', { properties: { ['n'.repeat(50 * schemaSizeMax)]: true } }],
    ['long texts', { properties: { a: { format: 'f'.repeat(50 * schemaSizeMax) } } }],
  ]
  test.each(large)('%s', (_, schema) => {
    expect(() => checkOf(schema, 'arguments')).toThrow(`at most ${schemaSizeMax} are checked`)
    // Its steps end there, too.
    expect(() => [...readingSchema(schema, 'arguments')]).toThrow()
  })

  test('and one that is nested too deeply is not used', () => {
    expect(checkOf(chain(128, 'not'), 'arguments')(1)).toBeUndefined()
    expect(() => checkOf(chain(129, 'not'), 'arguments')).toThrow('nested too deeply')
  })

  test('and texts for people cost nothing, nor what nobody asks', () => {
    const words = 'word '.repeat(10_000)
    const more = { default: times(5000, () => 1), examples: [words], unknown: named(5000, () => ({ type: 'no' })) }
    const schema = { title: words, description: words, ...more, properties: named(100, () => ({ description: words })) }
    expect(checkOf(schema, 'arguments')({})).toBeUndefined()
  })

  test.each<[what: string, schema: JsonSchema, problem: string]>([
    ['a type', { properties: { a: { type: 'strng' } } }, 'schema.properties.a.type must be one of null, boolean,'],
    ['a list of types', { type: [] }, 'schema.type must be one of null'],
    ['a type twice', { type: ['null', 'null'] }, 'a list of these, each once'],
    ['a text for schemas', { properties: 'a'.repeat(100) }, 'schema.properties must be an object of schemas'],
    ['a list for a schema', { allOf: [{ not: [] }] }, 'schema.allOf.0.not must be a schema'],
    ['names', { required: 'a' }, 'schema.required must be a list of texts'],
    ['a bound', { minLength: -1 }, 'schema.minLength must be a whole number, at least 0'],
    ['a divisor', { multipleOf: 0 }, 'schema.multipleOf must be a number above 0'],
  ])('and names the place of what is wrong: %s', (_, schema, problem) => {
    expect(() => checkOf(schema, 'arguments')).toThrow(problem)
  })

  test('dynamic references lead where others do', () => {
    const nested = (levels: number): JsonSchema =>
      levels === 0 ? { type: 'string' } : { $dynamicAnchor: `a${levels}`, properties: { a: nested(levels - 1) } }
    const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })
    expect(checkOf(nested(28), 'arguments')(deep(28))).toContain('must be string')
    const tree = { $dynamicAnchor: 'tree', properties: { next: { $dynamicRef: '#tree' }, n: { type: 'number' } } }
    const check = checkOf(tree, 'arguments')
    expect(check({ next: { next: { n: 1 } } })).toBeUndefined()
    expect(check({ next: { next: { n: 'x' } } })).toContain('arguments.next.next.n must be number')
  })
})

describe('a value costs no more than a bound', () => {
  const tooLarge = 'arguments: are too large to check by this schema: send fewer values'
  /** At each level it looks at the value below twice. */
  const twice: JsonSchema = {
    properties: { a: { anyOf: [{ $ref: '#' }, { $ref: '#' }] } },
    additionalProperties: false,
  }
  const nested = (levels: number, inside: unknown): unknown =>
    levels === 0 ? inside : { a: nested(levels - 1, inside) }

  test('where a schema looks at a value again and again', () => {
    for (const schema of [
      twice,
      {
        $defs: { x: twice },
        properties: { a: { oneOf: [{ $ref: '#' }, { $ref: '#' }] } },
        additionalProperties: false,
      },
    ]) {
      expect(checkOf(schema, 'arguments')(nested(30, { b: 1 }))).toBe(tooLarge)
      expect(checkOf(schema, 'arguments')(nested(4, { b: 1 }))).toContain('b')
      expect(checkOf(schema, 'arguments')(nested(4, {}))?.includes('too large') ?? false).toBe(false)
    }
  })

  test('where a large value meets a large schema', () => {
    const schema = { type: 'array', items: { anyOf: times(300, (index) => ({ const: index })) } }
    const check = checkOf(schema, 'arguments')
    // Each item is held to all alternatives before the last.
    const most = Math.floor(schemaStepsMax / 300 / 8)
    expect(check(times(most - 50, () => 299))).toBeUndefined()
    expect(check(times(most + 50, () => 299))).toBe(tooLarge)
  })

  test('where references are followed to keywords without number', () => {
    const through = (inside: object) => ({
      additionalProperties: { allOf: times(100, () => ({ $ref: '#/$defs/a' })) },
      propertyNames: { $ref: '#/$defs/a' },
      $defs: { a: { allOf: times(100, () => ({ $ref: '#/$defs/b' })) }, b: { allOf: times(100, () => inside) } },
    })
    expect(checkOf(through({ minLength: 0 }), 'arguments')({ a: 'x' })).toBe(tooLarge)
    // Some errors are found at once, and all of them would be a million.
    expect(checkOf(through({ minLength: 5 }), 'arguments')({ a: 'x' })?.split('; ')).toHaveLength(10)
  })

  test('where the lengths of a text are looked at again and again', () => {
    const schema = {
      additionalProperties: { allOf: times(140, () => ({ $ref: '#/$defs/a' })) },
      $defs: { a: { allOf: times(140, () => ({ minLength: 50 })) } },
    }
    const check = checkOf(schema, 'arguments')
    expect(check({ a: 'n'.repeat(100) })).toBeUndefined()
    expect(check({ a: 'n'.repeat(5000) })).toBe(tooLarge)
  })

  test('where names are long', () => {
    const check = checkOf({ propertyNames: { allOf: times(400, () => ({ minLength: 1 })) } }, 'arguments')
    expect(check({ ['n'.repeat(2000)]: 1 })).toBeUndefined()
    expect(check(named(3000, () => 1))).toBe(tooLarge)
    expect(check({ ['n'.repeat(900_000)]: 1 })).toBe(tooLarge)
    // An error has the way to it, which is written for those that are shown alone.
    const choices = { additionalProperties: { anyOf: [...times(450, () => ({ type: 'string' })), {}] } }
    const slashes = Object.fromEntries(times(95, (index) => [`${'/'.repeat(2040)}${index}`, 1]))
    expect(checkOf(choices, 'arguments')(slashes)).toBeUndefined()
  })

  test.each<[keyword: string, schema: JsonSchema]>([
    ['minProperties', { minProperties: 1 }],
    ['maxProperties', { maxProperties: 20_000 }],
    ['propertyNames', { not: { propertyNames: false } }],
  ])('where the names of an object are listed again and again: %s', (_, inside) => {
    const $defs = { a: { allOf: times(100, () => inside) }, b: { allOf: times(10, () => ({ $ref: '#/$defs/a' })) } }
    const check = checkOf({ $ref: '#/$defs/b', $defs }, 'arguments')
    expect(check(named(20_000, () => 1))).toBe(tooLarge)
    expect(check(named(20, () => 1))).not.toBe(tooLarge)
  })

  test('where the names that depend are many', () => {
    const of = (value: unknown) => checkOf({ items: { dependencies: named(400, () => true) } }, 'arguments')(value)
    expect(of(times(10_000, () => ({})))).toBe(tooLarge)
    expect(of(times(100_000, () => 0))).toBeUndefined()
  })

  test('where an error that nobody reads would have a long way', () => {
    const $defs = {
      r: { additionalProperties: { $ref: '#/$defs/r' }, items: { anyOf: [...times(9, () => false), true] } },
    }
    const nested = (levels: number): unknown => (levels === 0 ? times(2000, () => 0) : { a: nested(levels - 1) })
    const check = checkOf({ $ref: '#/$defs/r', $defs }, 'arguments')
    expect(check(nested(1))).toBeUndefined()
    expect(check(nested(60))).toBe(tooLarge)
  })

  test('where patterns and steps are many', () => {
    const steps = { items: { anyOf: [...times(9, () => ({ type: 'string' })), true] } }
    const check = checkOf({ properties: { a: { format: 'byte' }, b: steps } }, 'arguments')
    const b = times(4000, () => 0)
    expect(check({ b })).toBeUndefined()
    expect(check({ a: 'QUJD'.repeat(200_000) })).toBeUndefined()
    expect(check({ a: 'QUJD'.repeat(200_000), b })).toBe(tooLarge)
  })

  test('where a long text of the schema, or the names of a large object, are looked at again and again', () => {
    const names = Object.fromEntries(times(39_000, (index) => [`k${index}`, 1]))
    const often = [
      { keyword: { enum: ['\u0101'.repeat(36_000)] }, value: '1' },
      { keyword: { minProperties: 5 }, value: names },
      { keyword: { additionalProperties: false }, value: names },
    ]
    for (const { keyword, value } of often) {
      const asked = (count: number) => {
        const $defs = { a: { not: keyword }, b: { allOf: times(count, () => ({ $ref: '#/$defs/a' })) } }
        return checkOf({ allOf: times(count, () => ({ $ref: '#/$defs/b' })), $defs }, 'arguments')(value)
      }
      expect(asked(1)).not.toBe(tooLarge)
      expect(asked(13)).toBe(tooLarge)
    }
  })

  test('where it is noted of each item what was evaluated', () => {
    const items = times(49_000, () => 0)
    expect(checkOf({ items: {}, unevaluatedItems: false }, 'arguments')(items)).toBeUndefined()
    const each = { allOf: times(5, () => ({})) }
    expect(checkOf({ items: each }, 'arguments')(items)).toBeUndefined()
    expect(checkOf({ items: each, unevaluatedItems: false }, 'arguments')(items)).toBe(tooLarge)
  })

  test('where a text is looked at again and again', () => {
    const keywords = [{ uniqueItems: true }, { contains: { const: '' } }, { items: { minLength: 1 } }]
    for (const keyword of keywords) {
      const $defs = { a: { allOf: times(90, () => keyword) } }
      const check = checkOf({ allOf: times(90, () => ({ $ref: '#/$defs/a' })), $defs }, 'arguments')
      expect(check(['"'.repeat(400_000)])).toBe(tooLarge)
    }
  })

  test('where an item may have very many errors', () => {
    const contains = { anyOf: times(150, () => false) }
    expect(checkOf({ contains }, 'arguments')(times(20_000, () => 1))).toBe(tooLarge)
    expect(checkOf({ contains }, 'arguments')([1])).toBe('arguments must contain at least 1 valid items')
  })

  test('where an error would repeat a text', () => {
    const text = checkOf(
      { required: times(900, (index) => `${index}`), enum: [1] },
      'arguments',
    )({ a: 'x'.repeat(1e5) })
    expect(text?.length).toBeLessThan(10 * 410)
  })

  test('where references lead round and round', () => {
    expect(checkOf({ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, 'arguments')({})).toBe(tooLarge)
  })

  test('where patterns are many', () => {
    const schema = { items: { pattern: 'a'.repeat(500) } }
    const text = 'b'.repeat(mockPatternCostMax / 500)
    expect(checkOf(schema, 'arguments')([text, text])).toContain('patterns of the schema')
  })
})

describe('a long text', () => {
  test('counts as many values', () => {
    const check = checkOf({ allOf: times(400, () => ({ maxLength: 1e6 })) }, 'arguments')
    expect(check('x'.repeat(900_000))).toContain('too large to check')
    expect(check('x'.repeat(900))).toBeUndefined()
    expect(checkOf({ maxLength: 1e6, minLength: 1 }, 'arguments')('x'.repeat(900_000))).toBeUndefined()
  })

  test('fits no format but base64, and a format costs as a pattern does', () => {
    for (const format of ['uri', 'uri-template', 'url', 'json-pointer', 'email', 'date', 'regex'])
      expect(checkOf({ format }, 'arguments')('a'.repeat(formatCharsMax + 1))).toContain('must match format')
    expect(checkOf({ format: 'byte' }, 'arguments')('YWFh'.repeat(100_000))).toBeUndefined()
    expect(checkOf({ format: 'uri' }, 'arguments')(`https://a.example/${'x'.repeat(2000)}`)).toBeUndefined()
    expect(checkOf({ format: 'int32' }, 'arguments')(5)).toBeUndefined()
    const many = checkOf({ items: { format: 'uri' } }, 'arguments')
    expect(many(times(500, (index) => `https://a.example/${index}`))).toBeUndefined()
    expect(many(times(500, () => `https://a.example/${'x'.repeat(1000)}`))).toContain('take too long')
  })
})

test('nothing of a schema is written to the log', () => {
  const written: unknown[][] = []
  const usual = { ...console }
  for (const name of ['log', 'warn', 'error'] as const)
    console[name] = (...words: unknown[]) => void written.push(words)
  try {
    const check = checkOf({ properties: { a: { format: 'x\n{"event":"forged"}' } }, nope: 1 }, 'arguments')
    expect(check({ a: 'b' })).toBeUndefined()
  } finally {
    Object.assign(console, usual)
  }
  expect(written).toEqual([])
})

test('a reference leads to a schema within, whose steps are counted', () => {
  const good = ['#', '#/$defs/a', '#/properties/x~1y', '#/properties/const', '#/allOf/0', '#here']
  const bad = [
    '#/default',
    '#/enum/0',
    '#/const',
    '#/nowhere',
    '#/$defs',
    'https://x.example/y',
    'a',
    '#/%',
    '#/unknown/b',
  ]
  const schema = {
    $defs: { a: true },
    properties: { 'x/y': {}, const: { $anchor: 'here' } },
    allOf: [{}],
    default: {},
    enum: [{}],
    unknown: { b: {} },
  }
  for (const $ref of good)
    expect(checkOf({ ...schema, enum: [{}, []], items: { $ref } }, 'arguments')([])).toBeUndefined()
  for (const $ref of bad)
    expect(() => checkOf({ ...schema, items: { $ref } }, 'arguments')).toThrow('leads to no schema within it')
  expect(() => checkOf({ properties: { a: { $id: 'b' } } }, 'arguments')).toThrow('$id within')
  expect(checkOf({ properties: { $id: { type: 'string' } } }, 'arguments')({ $id: 1 })).toContain('must be string')
})

test('what const and enum hold stays as it is', () => {
  const value = { $ref: '#/nowhere', x: [1] }
  for (const schema of [{ const: value }, { enum: [value] }] as JsonSchema[]) {
    expect(checkOf(schema, 'arguments')(value)).toBeUndefined()
    expect(checkOf(schema, 'arguments')({ $ref: '#/nowhere' })).toBeString()
  }
  const tree = { properties: { next: { $ref: '#' }, $ref: { type: 'string' } }, additionalProperties: false }
  expect(checkOf(tree, 'arguments')({ next: { next: { $ref: 'a' } } })).toBeUndefined()
  expect(checkOf(tree, 'arguments')({ next: { next: { $ref: 1 } } })).toBe('arguments.next.next.$ref must be string')
})

test('the first ten errors of a value are given', () => {
  const check = checkOf({ items: { type: 'string', minLength: 2 } }, 'arguments')
  expect(check([1, 'a'])).toBe('arguments.0 must be string; arguments.1 must not have fewer than 2 characters')
  expect(check(times(20_000, () => 1))?.split('; ')).toHaveLength(10)
})

test('errors of a choice are given where none of it fits', () => {
  const check = checkOf({ anyOf: [{ type: 'string' }, { required: ['a'] }] }, 'arguments')
  expect(check({ a: 1 })).toBeUndefined()
  expect(check({})).toBe(
    "arguments must be string; arguments must have required property 'a'; arguments must match a schema in anyOf",
  )
})

/** Schemas that double at each level, so that 40 levels would take years. */
const doubling = (refer: (level: number) => object, more: (level: number) => object = () => ({})) =>
  times(40, (level) => ({
    ...more(level),
    ...(level === 0 ? { type: 'string' } : { anyOf: [refer(level - 1), refer(level - 1)] }),
  }))

describe('steps cannot be escaped', () => {
  const named = (all: object[], name: (level: number) => string) =>
    Object.fromEntries(all.map((one, level) => [name(level), one]))
  const at = (pointer: string) => (level: number) => ({ $ref: `${pointer}${level}` })
  const free = { 'x-postern-step': [-1e15, 0] }

  test('by a schema that says itself how many it takes', () => {
    const $defs = named(
      doubling(at('#/$defs/d'), () => free),
      (level) => `d${level}`,
    )
    const check = checkOf({ $defs, properties: { a: { $ref: '#/$defs/d39' } } }, 'arguments')
    expect(check({ a: 1 })).toContain('too large to check')
  })

  test.each([
    ['an unknown keyword', (all: object) => all],
    ['the names of dependencies', (all: object) => ({ dependentRequired: all })],
    ['a value', (all: object) => ({ const: all })],
    ['an annotation', (all: object) => ({ default: all })],
  ])('by schemas in %s', (_, placed) => {
    const anchored = doubling(at('#d'), (level) => ({ ...free, $anchor: `d${level}` }))
    const pointed = placed({ u: { $anchor: 'd39' } })
    const path = Object.keys(pointed)[0] === 'u' ? '#/u' : `#/${Object.keys(pointed)[0]}/u`
    // Refused for their steps if their number alone does not refuse them.
    for (const [all, $ref] of [
      [named(anchored, (level) => `u${level}`), '#d39'],
      [
        named(
          doubling(at('#/u'), () => free),
          (level) => `u${level}`,
        ),
        `${path}39`,
      ],
    ] as const)
      expect(() => checkOf({ ...placed(all), properties: { a: { $ref } } }, 'arguments')).toThrow(
        /leads to no schema|keywords, names|must be an object of lists/,
      )
  })

  test('by the names of properties', () => {
    const names = { a: { anyOf: [{ $ref: '#d' }, { $ref: '#d' }] }, $anchor: { type: 'd' } }
    expect(() => checkOf({ properties: names, items: { $ref: '#/properties' } }, 'arguments')).toThrow()
  })
})

test('an address takes the square of its length, and is not looked at again where that was too much', () => {
  const items = { not: { format: 'url' } }
  const check = checkOf({ allOf: [{ properties: { l: { items } } }, { required: ['zz'] }] }, 'arguments')
  const costs = (chars: number, count: number) => check({ l: times(count, () => `http://${':'.repeat(chars)}`) })
  expect(costs(200, 47)).toContain('zz')
  expect(costs(2030, 47)).toContain('take too long to check')
})

test('patterns are counted by their instructions, too', () => {
  const patterns = Object.fromEntries(times(25, (index) => [`^p${index}[a-z]{1,410}$`, { type: 'string' }]))
  expect(() => checkOf({ patternProperties: patterns }, 'arguments')).toThrow('its patterns are too large')
  const classes = named(40, (index) => ({ pattern: `^\\pL{27}${index}$` }))
  expect(() => checkOf({ properties: classes }, 'arguments')).toThrow('its patterns are too large')
})

test('what others have evaluated is asked within a bound', () => {
  const properties = Object.fromEntries(times(200, (index) => [`p${index}`, true]))
  const refers = { $defs: { a: { properties } }, anyOf: times(200, () => ({ $ref: '#/$defs/a' })) }
  const check = checkOf({ ...refers, unevaluatedProperties: false }, 'arguments')
  expect(check({ p1: 1 })).toBeUndefined()
  expect(check({ b: 1 })).toBe('arguments has an unknown field "b"')
  const all = { allOf: times(200, () => ({ items: true })), unevaluatedItems: false }
  expect(checkOf(all, 'arguments')(times(20, () => 1))).toBeUndefined()
  expect(checkOf(all, 'arguments')(times(20_000, () => 1))).toContain('too large to check')
})

test.each<[schema: JsonSchema, fitting: unknown[], others: unknown[]]>([
  [{ multipleOf: 0.01 }, [19.99, 1.15, 0, -0.07, 1e15], [19.991, 0.005]],
  [{ multipleOf: 0.1 }, [0.3, 0.7], [0.35]],
  [{ multipleOf: 0.0001 }, [0.0075], [0.00751]],
  [{ format: 'time' }, ['23:00:00Z'], ['25:00:00Z']],
  [{ format: 'date' }, ['2026-02-28'], ['2026-19-39', '2026-02-30']],
  [{ format: 'date-time' }, ['2026-02-28T10:00:00Z'], ['2026-02-31T29:00:00Z']],
  [
    { format: 'url' },
    ['https://example.com/a?b#c', 'ftp://example.com'],
    ['example.com', 'https://a b', 'mailto:a@b.cc'],
  ],
])('%j', (schema, fitting, others) => {
  const check = checkOf(schema, 'arguments')
  for (const value of fitting) expect({ value, problem: check(value) }).toEqual({ value, problem: undefined })
  for (const value of others) expect({ value, fits: check(value) === undefined }).toEqual({ value, fits: false })
})
