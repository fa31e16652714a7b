import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { placeOf } from '../../src/schema/check.ts'
import {
  decodeUtf8,
  type JsonResult,
  keptPlacesMax,
  parsing,
  parsingExactly,
  parsingWithin,
  readJson,
} from '../../src/schema/json.ts'
import { unescaped } from '../../src/schema/json-tokens.ts'
import { drained } from '../../src/schema/steps.ts'

const givenBy = (read: JsonResult) => ('value' in read ? read.value : read)

test('parsingExactly() keeps digits while the places of numbers, times their depth, are few', () => {
  const bounds = { keysMax: 10, valuesMax: 200_000, depthMax: 500 }
  const depth = 400
  const nested = (count: number) =>
    `${'['.repeat(depth)}${Array(count).fill('9007199254740993').join(',')}${']'.repeat(depth)}`
  const written = (text: string) => JSON.stringify(drained(parsingExactly(text, bounds))?.value)
  const most = Math.floor(keptPlacesMax / depth)
  expect(written(nested(most))).toBe(nested(most))
  expect(written(nested(most + 1))).toBe(nested(most + 1).replaceAll('9007199254740993', '9007199254740992'))
})

test('parsingWithin() builds nothing of what has more in it', () => {
  const within = { keysMax: 2, valuesMax: 6, depthMax: 3 }
  const rows: [text: string, isWithin: boolean][] = [
    ['{"a":[{"b":"[[[[{{{{,,,,::::"}]}', true],
    ['{"a":1,"b":2,"c":3}', false],
    ['[1,2,3,4,5,6,7]', false],
    ['[[],[],[]]', true],
    ['[[[[]]]]', false],
    // What was closed before counts for nothing.
    ['[[],[[[]]]]', false],
    ['[[],[[]]]', true],
    ['{"a":{"b":[[1]]}}', false],
  ]
  for (const [text, isWithin] of rows) {
    const read = drained(parsingWithin(text, within))
    expect([text, read]).toEqual([text, isWithin ? { value: JSON.parse(text) } : undefined])
  }
})

describe('readJson()', () => {
  test('gives what JSON.parse gives, in any spelling of white space', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, undefined, space)
        expect(givenBy(readJson(text, { depthMax: 32 }))).toEqual(JSON.parse(text))
      }),
      { numRuns: 2000 },
    )
  })

  test('finds a key that is given twice, whatever is around it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), fc.string(), (one, other, key) => {
        const [name, first, second] = [key, one, other].map((part) => JSON.stringify(part))
        const twice = `{${name}:${first},"between":[${second}],${name}:${second}}`
        for (const text of [twice, `[${first},${twice}]`, `{"a":${twice},"b":${first}}`]) {
          expect(readJson(text, { depthMax: 32 })).toHaveProperty('problem.message', 'is given twice')
        }
      }),
      { numRuns: 1000 },
    )
  })

  const numbers: [text: string, isExact: boolean][] = [
    ['9007199254740991', true],
    ['9007199254740993', false],
    ['12345678901234567890', false],
    ['18446744073709551616', false],
    ['-1.50e3', true],
    ['0.10000000000000000000000', true],
    ['3.14159265358979323846', false],
    ['1e400', false],
    ['1e-400', false],
    ['0e999', true],
    ['1e21', true],
    ['-12345678901234567890', false],
    ['-0', true],
    ['100000000000000000000000', true],
  ]
  for (const [text, isExact] of numbers) {
    test(`${isExact ? 'keeps' : 'tells of'} the number ${text}`, () => {
      const read = readJson(`{"a":{"${text}":["x",${text}]}}`, { depthMax: 32, numbers: 'exact' })
      if (isExact) expect(read).toHaveProperty('value')
      else {
        const message = `is a number that cannot be kept as it is written (${text}): write it as a string`
        expect(read).toEqual({ problem: { place: placeOf(['a', text, 1]), message } })
      }
      expect(readJson(`[${text}]`, { depthMax: 32 })).toHaveProperty('value')
    })
  }

  test('keeps every number that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(givenBy(readJson(JSON.stringify([number]), { depthMax: 32, numbers: 'exact' }))).toEqual([
          JSON.parse(JSON.stringify(number)),
        ])
      }),
      { numRuns: 5000 },
    )
  })

  const problems: [text: string, place: string, message: RegExp][] = [
    ['', '', /is not JSON/],
    ['{} {}', '', /is not JSON/],
    ['{"a":1,}', '', /is not JSON: .* \(line 1, column 8\)$/],
    ['{\n  "a": [1\n}', '', /is not JSON: .* \(line 3, column 1\)$/],
    ['['.repeat(100_000), '', /is not JSON: [^(]*$/],
    [`${' '.repeat(300_000)}x`, '', /is not JSON: [^(]*$/],
    ["{'a':1}", '', /is not JSON/],
    ['[NaN]', '', /is not JSON/],
    ['{"a":1,"a":1}', 'a', /given twice/],
    ['{"a":1,"b":{},"a":1}', 'a', /given twice/],
    ['{"x":[1,{"k":1,"k":2}]}', 'x[1].k', /given twice/],
    ['{"a":1,"\\u0061":1}', 'a', /given twice/],
    ['{"a b":[{},{"\\"":1,"\\u0022":2}]}', '["a b"][1]["\\""]', /given twice/],
    ['{"n\\u0061me":1}', 'name', /letter of its name escaped/],
    ['{"n\\u005Fx":1}', 'n_x', /letter of its name escaped/],
    ['{"__proto__":1,"__proto__":2}', '__proto__', /given twice/],
    [`{${Array.from({ length: 20 }, (_, i) => `"k${i}":0`).join()},"k3":1}`, 'k3', /given twice/],
    ['["\\ud800"]', '[0]', /surrogate/],
    ['{"\\udc00x":1}', '[""]', /surrogate/],
    ['["a\\\\", "\\ud83d"]', '[1]', /surrogate/],
    ['[[[[1]]]]', '[0][0][0]', /deeper than 3/],
    ['{"a":{"b":{"c":{}}}}', 'a.b.c', /deeper than 3/],
  ]
  for (const [text, place, message] of problems) {
    test(`tells what is wrong with ${text.slice(0, 40)}`, () => {
      const read = readJson(text, { depthMax: 3 })
      expect(read).toHaveProperty('problem')
      if ('problem' in read) expect(read.problem).toMatchObject({ place, message: expect.stringMatching(message) })
    })
  }

  const fine = [
    'null',
    '"x"',
    '[[[1],[2]]]',
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":2}]',
    '{"a":"a","b":"\\"a\\":1"}',
    '"\\ud83d\\ude00"',
    '{"a\\\\":1,"a":2}',
    '["{","}","[","\\\\\\""]',
  ]
  for (const text of fine)
    test(`has nothing against ${text}`, () =>
      expect(givenBy(readJson(text, { depthMax: 3 }))).toEqual(JSON.parse(text)))

  test('counts the values of objects and arrays, and four for each key', () => {
    const counted = (text: string) => {
      const counts: number[] = []
      readJson(text, { depthMax: 9, owner: { takeValues: (values) => void counts.push(values) } })
      return counts[0]
    }
    expect(['7', '[]', '[1,[2,3]]', '{"a":[{}],"b":1.5}', '{"\\u0061":[1,2]}'].map(counted)).toEqual([0, 1, 4, 12, 7])
  })

  test('keeps __proto__ an own key', () => {
    const read = readJson('{"__proto__":{"polluted":true}}', { depthMax: 5 })
    expect('value' in read && Object.hasOwn(read.value as object, '__proto__')).toBe(true)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('gives NaN for a number that another reader may take for another one, and all others as they are', () => {
    const marked = (text: string) => givenBy(readJson(text, { depthMax: 32, numbers: 'marked' }))
    expect(marked('9007199254740993')).toEqual(Number.NaN)
    const text =
      '{"id":1.50,"l":[9007199254740992.4,{"a":1e999}],"__proto__":{"x":1e999},"a.b":-1e-400,"n":12e3,"y":12345678901234567890}'
    expect(marked(text)).toEqual(
      JSON.parse(
        '{"id":1.5,"l":[9007199254740992,{"a":1e999}],"__proto__":{"x":"NaN"},"a.b":"NaN","n":12000,"y":"NaN"}',
        (_, value) => (value === 'NaN' ? Number.NaN : value),
      ),
    )
  })

  test('keys and values are bounded before anything is built', () => {
    const bounded = (text: string) => readJson(text, { depthMax: 32, keysMax: 3, valuesMax: 5 })
    expect(bounded('{"a":{"b":":,"},"c":[1,2]}')).toHaveProperty('value')
    expect(bounded('{"a":{"b":1},"c":[{"d":1}]}')).toEqual({ problem: { place: '', message: 'has more than 3 keys' } })
    expect(bounded('[[1,2],[]]')).toHaveProperty('value')
    expect(bounded('[[[],[],[]],0]')).toEqual({ problem: { place: '', message: 'has more than 5 values' } })
    for (const cut of ['"', '["', '{"a', '["\\"', '"\\', ':::', '{":']) {
      expect(bounded(cut)).toHaveProperty('problem.message', expect.stringMatching(/^is not JSON/))
    }
  })

  test('works in steps, whichever of its parts are many', () => {
    const stepsOf = (value: unknown) => [
      ...parsing(Buffer.from(JSON.stringify(value)), { depthMax: 32, numbers: 'exact' }),
    ]
    // No step looks at more than 10,000 characters outside of texts, or 2,000 texts or values.
    expect(stepsOf(Array(20_000).fill('x')).length).toBeGreaterThan(20)
    expect(stepsOf(Array(20_000).fill(1)).length).toBeGreaterThan(12)
    expect(stepsOf(Array.from({ length: 200 }, () => Array(100).fill(1))).length).toBeGreaterThan(12)
    expect(stepsOf([...Array(20_000).fill(1), 1e30]).length).toBeGreaterThan(8)
    expect(stepsOf({ a: ['x', 1, 'y'.repeat(1100)] }).length).toBe(1)
    // A small body is read at once.
    expect(stepsOf({ a: ['x', 1, {}] }).length).toBe(0)
    // Each number that changes is replaced where it is, which costs as much as it is deep.
    const members = Array.from({ length: 2000 }, (_, i) => `"k${i}":9007199254740993`)
    const deep = Buffer.from(`${'{"a":'.repeat(50)}{${members}}${'}'.repeat(50)}`)
    const costOf = (numbers: 'any' | 'marked') =>
      [...parsing(deep, { depthMax: 64, numbers })].reduce((sum, step) => sum + step, 0)
    expect(costOf('marked') - costOf('any')).toBeGreaterThan(2000 * 50)
  })

  test('is not slow on text made to be', () => {
    const evil = [
      `[1${'0'.repeat(1_000_000)}1]`,
      `[0.${'0'.repeat(1_000_000)}1]`,
      `[${'0.10'.repeat(250_000)}]`,
      `[1e${'1'.repeat(1_000_000)}]`,
      '['.repeat(100_000),
      `"${'\\\\'.repeat(30_000)}"`,
      `[${'"\\"",'.repeat(10_000)}0]`,
      `{${Array.from({ length: 5000 }, (_, i) => `"${i}":0`).join()}}`,
    ]
    for (const text of evil)
      for (const numbers of ['any', 'exact', 'marked'] as const) readJson(text, { depthMax: 32, numbers })
  })
})

describe('decodeUtf8()', () => {
  const bad = ['ff', 'c0af', 'eda080', 'f5808080', '80', 'e282', 'efbbbf7b7d']
  for (const hex of bad) test(`refuses ${hex}`, () => expect(decodeUtf8(Buffer.from(hex, 'hex'))).toBeUndefined())
  test('takes all else', () => expect(decodeUtf8(Buffer.from('aß漢😀'))).toBe('aß漢😀'))
})

test('unescaped() gives the string that the runtime reads, and all else as it is', () => {
  const parts = [
    'a',
    'é',
    '\\n',
    '\\"',
    '\\\\',
    '\\u0061',
    '\\uD83D',
    '\\a',
    '\\u00',
    '\\',
    '"',
    '\u0001',
    '\u2028',
    '/',
    '\\/',
    '\ud800',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 6 }), (given) => {
      const raw = given.join('')
      const read = () => {
        try {
          return raw.includes('\\') ? JSON.parse(`"${raw}"`) : raw
        } catch {
          return raw
        }
      }
      expect(unescaped(raw)).toBe(read())
    }),
    { numRuns: 5000 },
  )
  // A pattern may give up on such a length.
  const long = 'é\\n'.repeat(2_000_000)
  expect(unescaped(long) === JSON.parse(`"${long}"`)).toBe(true)
})
