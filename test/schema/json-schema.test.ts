/** Schemas of others: what they may cost, to compile and to hold a value to. */

import { describe, expect, spyOn, test } from 'bun:test'
import { schemaStepsMax } from '../../src/limits.ts'
import { checkedNameCharsMax, checkOf, formatCharsMax, mockPatternCostMax } from '../../src/schema/json-schema.ts'
import { keptCheckOf } from '../../src/schema/kept-checks.ts'
import { type JsonSchema, schemaSize, schemaSizeMax, schemaSizePerPattern } from '../../src/schema/schema-costs.ts'
import { drained } from '../../src/schema/steps.ts'

const times = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))
const named = <T>(count: number, make: (index: number) => T) =>
  Object.fromEntries(times(count, (index) => [`p${index}`, make(index)]))

/** Schemas in one another, of so many levels. */
const chain = (levels: number, keyword: string): JsonSchema =>
  levels === 0 ? {} : { [keyword]: chain(levels - 1, keyword) }

describe('a schema is counted before it is compiled', () => {
  const large: [what: string, schema: JsonSchema][] = [
    ['properties', { properties: named(schemaSizeMax, () => ({ type: 'string' })) }],
    ['patterns', { patternProperties: named(schemaSizeMax / schemaSizePerPattern, () => true) }],
    ['a long pattern', { pattern: 'a'.repeat(10 * schemaSizeMax) }],
    ['names that are required', { required: times(schemaSizeMax, (index) => `p${index}`) }],
    ['names that depend', { dependentRequired: named(schemaSizeMax / 2, () => ['a']) }],
    ['alternatives', { anyOf: times(schemaSizeMax, () => true) }],
    ['values', { enum: times(schemaSizeMax, (index) => index) }],
    ['definitions', { $defs: named(schemaSizeMax / 2, () => ({ type: 'string' })) }],
    ['references', { properties: named(schemaSizeMax / 2, () => ({ $ref: '#/$defs/a' })), $defs: { a: true } }],
    [
      'targets of references',
      { allOf: times(schemaSizeMax / schemaSizePerPattern, (index) => ({ $ref: `#/$defs/a/${index}` })) },
    ],
    ['long names', { properties: { ['n'.repeat(50 * schemaSizeMax)]: true } }],
    ['long texts', { properties: { a: { format: 'f'.repeat(50 * schemaSizeMax) } } }],
    ['names in a list that depends', { dependentRequired: { a: times(500, (index) => `p${index}`) } }],
    [
      'what references have within',
      {
        allOf: times(3, (index) => ({ $ref: `#/not${'/not'.repeat(index)}` })),
        not: { not: { not: { properties: named(150, () => ({ type: 'string' })) } } },
      },
    ],
    ['definitions without number', { $defs: times(schemaSizeMax + 1, (index) => ({ const: index })) }],
    ['schemas deep within', { allOf: times(100, () => chain(16, 'not')) }],
    ['schemas of members that only a value names', { allOf: times(15, () => chain(24, 'additionalProperties')) }],
    ['what examples and defaults hold', { default: { items: times(schemaSizeMax, () => 1) } }],
  ]
  test.each(large)('%s', (_, schema) => {
    const why = `at most ${schemaSizeMax} are checked`
    expect(() => checkOf(schema, 'arguments')).toThrow(why)
    expect(() => checkOf(schema, 'arguments')).toThrow(String(schemaSize(schema)))
  })

  test('and one that is nested too deeply never is', () => {
    for (const [keyword, most] of [
      ['items', 32],
      ['not', 128],
    ] as const) {
      expect(checkOf(chain(most, keyword), 'arguments')(1)).toBeUndefined()
      expect(() => checkOf(chain(most + 1, keyword), 'arguments')).toThrow('nested too deeply')
    }
  })

  test('and of a large one, the first error is given: it is not compiled again for the others', () => {
    const lacking = (count: number) => ({ required: ['a', 'b'], properties: named(count, () => ({ type: 'string' })) })
    expect(checkOf(lacking(50), 'arguments')({})?.split('; ')).toHaveLength(2)
    expect(checkOf(lacking(200), 'arguments')({})?.split('; ')).toHaveLength(1)
  })

  test('and a text in the place of schemas or lists is not taken apart', () => {
    const text = 'x'.repeat(10 ** 6)
    const values = spyOn(Object, 'values')
    for (const keyword of ['$defs', 'definitions', 'dependencies', 'dependentRequired']) schemaSize({ [keyword]: text })
    expect(values.mock.calls.filter(([value]) => typeof value === 'string')).toEqual([])
    values.mockRestore()
  })

  test('and what is defined counts once, however often it is referred to', () => {
    const properties = named(100, () => ({ type: 'string' }))
    const schema = (count: number) => ({
      allOf: times(count, () => ({ $ref: '#/$defs/a' })),
      $defs: { a: { properties } },
    })
    expect(schemaSize(schema(2)) - schemaSize(schema(1))).toBe(2)
    expect(schemaSize(schema(1))).toBeLessThan(320)
    // A property may have the name of a keyword.
    const named100 = { properties: { $defs: { properties }, definitions: { properties } } }
    expect(schemaSize(named100)).toBeGreaterThan(400)
  })

  test('dynamic references lead where others do, in one step for each anchor', () => {
    const nested = (levels: number): JsonSchema =>
      levels === 0 ? { type: 'string' } : { $dynamicAnchor: `a${levels}`, properties: { a: nested(levels - 1) } }
    const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })
    // Of 28 levels the library would make 2^28 functions.
    expect(checkOf(nested(28), 'arguments')(deep(28))).toContain('must be string')
    const tree = { $dynamicAnchor: 'tree', properties: { next: { $dynamicRef: '#tree' }, n: { type: 'number' } } }
    const check = checkOf(tree, 'arguments')
    expect(check({ next: { next: { n: 1 } } })).toBeUndefined()
    expect(check({ next: { next: { n: 'x' } } })).toContain('arguments.next.next.n must be number')
    const both = { $dynamicAnchor: 'a', $anchor: 'b' }
    expect(() => checkOf(both, 'arguments')).toThrow('it has both $anchor and $dynamicAnchor')
  })

  test('and the largest is compiled', () => {
    const others = schemaSizeMax - schemaSize({ enum: [] })
    const schema = { enum: times(others, (index) => index) }
    expect(schemaSize(schema)).toBe(schemaSizeMax)
    expect(checkOf(schema, 'arguments')(others - 1)).toBeUndefined()
  })

  test('and texts for people cost nothing', () => {
    const words = 'word '.repeat(10_000)
    const schema = { title: words, description: words, properties: named(100, () => ({ description: words })) }
    expect(schemaSize(schema)).toBe(102)
    expect(checkOf(schema, 'arguments')({})).toBeUndefined()
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
    const most = Math.floor(schemaStepsMax / 300 / 35)
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
    // One error is found at once, and all of them would be a million.
    expect(checkOf(through({ minLength: 5 }), 'arguments')({ a: 'x' })).toMatch(
      /^arguments must not have fewer.{0,200}$/,
    )
  })

  test('where the lengths of a text are looked at again and again', () => {
    const schema = {
      additionalProperties: { allOf: times(140, () => ({ $ref: '#/$defs/a' })) },
      $defs: { a: { allOf: times(140, () => ({ minLength: 50 })) } },
    }
    const check = checkOf(schema, 'arguments')
    expect(check({ a: 'n'.repeat(100) })).toBeUndefined()
    expect(check({ a: 'n'.repeat(2000) })).toBe(tooLarge)
  })

  test('where names are long', () => {
    const schema = { propertyNames: { allOf: times(400, () => ({ minLength: 1 })) } }
    const check = checkOf(schema, 'arguments')
    expect(check({ ['n'.repeat(checkedNameCharsMax)]: 1 })).toBeUndefined()
    const tooLong = `arguments: have a name of more than ${checkedNameCharsMax} characters`
    for (const value of [{ ['n'.repeat(checkedNameCharsMax + 1)]: 1 }, [{ a: { ['n'.repeat(900_000)]: 1 } }]])
      expect(check(value)).toBe(tooLong)
    expect(check(named(3000, () => 1))).toBe(tooLarge)
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

test('all that is wrong is said of a small value, and the first of a large one', () => {
  const check = checkOf({ items: { type: 'string', minLength: 2 } }, 'arguments')
  expect(check([1, 'a'])).toBe('arguments.0 must be string; arguments.1 must not have fewer than 2 characters')
  expect(check(times(20_000, () => 1))).toBe('arguments.0 must be string')
})

test('a schema that ajv makes broken code of refuses the value', () => {
  const broken = { patternProperties: { '^a': { type: 'integer' } }, anyOf: [{ additionalProperties: false }] }
  for (const schema of [
    { ...broken, unevaluatedProperties: false },
    { not: { anyOf: [{ required: ['a'] }, { unevaluatedProperties: false }], patternProperties: { '^a': true } } },
  ])
    expect(checkOf(schema, 'arguments')({ a: {} })).toContain('arguments: cannot be checked by this schema')
  // Where nothing asks for what was evaluated, its code is right.
  expect(checkOf(broken, 'arguments')({ a: {} })).toContain('arguments.a must be integer')
})

test('a schema is compiled once for its content', () => {
  const compiled = (schema: JsonSchema) => {
    const work = keptCheckOf(schema, 'arguments')
    const first = work.next()
    return { cost: first.done ? 0 : first.value, check: first.done ? first.value : drained(work) }
  }
  const schema = () => ({ type: 'object', properties: { once: { type: 'string' } } })
  const first = compiled(schema())
  expect(first.cost).toBeGreaterThan(0)
  expect(compiled(schema())).toEqual({ cost: 0, check: first.check })
  expect(compiled({ ...schema(), required: ['once'] }).cost).toBeGreaterThan(first.cost)
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
        /leads to no schema|keywords and names/,
      )
  })

  test('by the names of properties, or of what depends on them', () => {
    for (const keyword of ['properties', 'dependentSchemas']) {
      const names = { ...free, $anchor: 'd', anyOf: [{ $ref: '#d' }, { $ref: '#d' }] }
      for (const $ref of ['#d', `#/${keyword}`])
        expect(() => checkOf({ [keyword]: names, items: { $ref } }, 'arguments')).toThrow('leads to no schema')
    }
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
  expect(schemaSize({ patternProperties: patterns })).toBeLessThan(schemaSizeMax)
  expect(() => checkOf({ patternProperties: patterns }, 'arguments')).toThrow('its patterns are too large')
})

test('what references have evaluated is written out where it is asked for alone, and within a bound', () => {
  const properties = Object.fromEntries(times(400, (index) => [`p${index}`, true]))
  const refers = { $defs: { a: { properties } }, anyOf: times(200, () => ({ $ref: '#/$defs/a' })) }
  expect(checkOf(refers, 'arguments')({ a: 1 })).toBeUndefined()
  expect(() => checkOf({ ...refers, unevaluatedProperties: false }, 'arguments')).toThrow('unevaluatedProperties')
  const few = {
    $defs: { a: { properties: { a: true } } },
    anyOf: [{ $ref: '#/$defs/a' }],
    unevaluatedProperties: false,
  }
  expect(checkOf(few, 'arguments')({ a: 1 })).toBeUndefined()
  expect(checkOf(few, 'arguments')({ b: 1 })).toContain('unevaluated')
})
