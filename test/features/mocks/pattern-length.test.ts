/** The faker's texts of patterns, which are no longer than was said. */

import { expect, test } from 'bun:test'
import { generateSync } from 'json-schema-faker'
import { longestMadeOf, madeCharsOf } from '../../../src/features/mocks/pattern-length.ts'
import { patternProblem } from '../../../src/schema/patterns.ts'
import { random } from '../../support/random.ts'

const rows: [pattern: string, longest: number][] = [
  ['^[A-Z]{3}-\\d{4}$', 8],
  ['^(a|bcd)+$', 15],
  ['a{2,}', 7],
  ['(ab){1,3}c?', 7],
  ['(?:foo|barbaz){2}', 12],
  ['((((a)+)+)+)+', 625],
  // For the faker a range ends with the backslash, and the class with the bracket after it.
  ['[*-\\](((a+)+)+)[*-\\]', 127],
]
for (const [pattern, longest] of rows)
  test(pattern, () => {
    expect(longestMadeOf(pattern)).toBe(longest)
  })

test('no text is longer, of patterns at random', () => {
  const chance = random(53)
  const pieces = [
    ...['a', '\\d', '[x-z]', '.', '(', '(?:', ')', '|', '*', '+', '?', '{2}', '{1,3}', '{2,}', '{', '}', '[', ']', '^'],
    ...['$', '\\', '[*-\\', '[^', '(?<n>', '-'],
  ]
  let looked = 0
  for (let i = 0; i < 4000; i += 1) {
    const pattern = Array.from({ length: 1 + chance.int(12) }, () => chance.pick(pieces)).join('')
    if (patternProblem(pattern) !== undefined) continue
    looked += 1
    const texts = Array.from({ length: 10 }, (_, seed) =>
      String(generateSync({ type: 'string', pattern }, { seed }) ?? ''),
    )
    const most = Math.max(...texts.map(({ length }) => length))
    expect({ pattern, isLonger: most > longestMadeOf(pattern) }).toEqual({ pattern, isLonger: false })
  }
  expect(looked).toBeGreaterThan(500)
})

test('a wide range takes as long as many characters', () => {
  expect(madeCharsOf('^[a-z]$')).toBeLessThan(10)
  expect(madeCharsOf('^[\u4e00-\u9fff]$')).toBeWithin(300, 500)
  expect(madeCharsOf('^[\u0000-\uffff]$')).toBeGreaterThan(1000)
})

test('a character outside of a class takes as long as all in it', () => {
  expect(madeCharsOf('^[^\\s]{10}$')).toBeWithin(20, 60)
  expect(madeCharsOf('^\\W{790}$')).toBeGreaterThan(1600)
  expect(madeCharsOf('^[^\u0100-\u5000]{350}$')).toBeGreaterThan(100_000)
})
