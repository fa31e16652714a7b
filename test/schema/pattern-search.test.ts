/** `findingText` and `isAnchored`: what they say of patterns is what trying every short text says. */

import { describe, expect, test } from 'bun:test'
import { sliceCost } from '../../src/limits.ts'
import { findingText, isAnchored } from '../../src/schema/pattern-search.ts'
import { matches } from '../../src/schema/patterns.ts'
import { drained } from '../../src/schema/steps.ts'
import { type Random, random } from '../support/random.ts'

/** All texts of these letters, the shortest first. */
function textsUpTo(length: number, letters = ['a', 'b', '.', '\n', ' ']): string[] {
  const texts = ['']
  for (let from = 0, size = 0; size < length; size += 1) {
    const to = texts.length
    for (; from < to; from += 1) for (const letter of letters) texts.push(texts[from] + letter)
  }
  return texts
}

function pickPattern(chance: Random, depth = 2): string {
  const part = (): string => {
    if (depth > 0 && chance.chance(0.3)) return `(?:${pickPattern(chance, depth - 1)})`
    return chance.pick(['a', 'b', '\\.', '.', '[ab]', '[^a]', '\\b', '^', '$', '(?m:^)', '\\s', '(?i:A)'])
  }
  const parts = Array.from({ length: 1 + chance.int(3) }, () => part() + chance.pick(['', '', '', '?', '*', '+']))
  return parts.join(chance.pick(['', '', '|']))
}

for (const seed of [1, 2, 3])
  test(`a text is found exactly when there is one (seed ${seed})`, () => {
    const chance = random(seed)
    const texts = textsUpTo(4)
    let [found, missing] = [0, 0]
    for (let round = 0; round < 150; round += 1) {
      const all = Array.from({ length: chance.int(3) }, () => pickPattern(chance))
      const none = Array.from({ length: chance.int(3) }, () => pickPattern(chance))
      const isWanted = (text: string) =>
        all.every((one) => matches(one, text)) && !none.some((one) => matches(one, text))
      const result = drained(findingText(all, none))
      const shortest = texts.find(isWanted)
      if (result === 'none') expect([all, none, shortest]).toEqual([all, none, undefined])
      else expect([all, none, result && isWanted(result.text)]).toEqual([all, none, true])
      // With other letters it may be shorter.
      if (typeof result === 'object' && shortest !== undefined)
        expect(result.text.length).toBeLessThanOrEqual(shortest.length)
      if (result === 'none') missing += 1
      else found += 1
    }
    expect(Math.min(found, missing)).toBeGreaterThan(20)
  })

const cases: [all: string[], none: string[], text: string | undefined][] = [
  [['^issues\\.', '^pulls\\.'], [], undefined],
  [['^issues\\.'], ['^issues\\.get$'], 'issues.'],
  [['^(?:a|b|c)$'], ['^(?:a|b)$'], 'c'],
  // The sign for kelvin is a K where case is folded.
  [['(?i)^k$'], ['^[kK]$'], '\u212a'],
  [['(?i)^k$', '^[\\x{2100}-\\x{2200}]$'], [], '\u212a'],
  [['(?i)^s$'], ['^[sS]$'], '\u017f'],
  [[''], ['(?s)^.*$'], undefined],
  [[''], ['^.*$'], '\n'],
  [['^\\pL$'], ['^[a-zA-Z]$'], 'ª'],
  [['^a{600}a{424}$'], [], 'a'.repeat(1024)],
  [['^[^\\x00-\\x{10FFFF}]$'], [], undefined],
]
for (const [all, none, text] of cases)
  test(`${all.join(' and ')} without ${none.join(' and ')}`, () => {
    expect(drained(findingText(all, none))).toEqual(text === undefined ? 'none' : { text })
  })

test('a search that would take too long stops undecided', () => {
  expect(drained(findingText(['^(a|b)*a(a|b){14}$'], ['^b']))).toBeUndefined()
  expect(drained(findingText(['(?i)^ä$']))).toBeUndefined()
})

test('a text of many units is not said to be missing where one of fewer is there', () => {
  const all = ['^[😀]?[\\u0100-\\U0010FFFF]{600}$', '^(?:😀|[\\u0100-\\U0010FFFF])+$'].map((one) =>
    one.replaceAll(/\\u(\w{4})|\\U(\w{8})/g, (_, short, long) => `\\x{${short ?? long.slice(2)}}`),
  )
  expect(drained(findingText(all))).not.toBe('none')
  // Each letter takes two units, so none of 600 fits.
  expect(drained(findingText(['^[\\x{10000}-\\x{10FFFF}]{600}$']))).not.toEqual({ text: expect.anything() })
})

test('the cost of a search is that of its work, however many kinds of characters there are', () => {
  const letters = Array.from({ length: 330 }, (_, index) => String.fromCodePoint(0x100 + index))
  const pattern = letters
    .map((letter, index) => (index % 2 === 0 ? `${letter}${letters[index + 1]}` : ''))
    .filter(Boolean)
    .join('|')
  for (const none of [[], [pattern]]) {
    let [total, worst] = [0, 0]
    for (const step of findingText([pattern], none)) {
      total += step
      worst = Math.max(worst, step)
    }
    expect(worst).toBeLessThan(sliceCost)
    expect(total).toBeLessThan(4_000_000)
  }
})

test('a text is no longer than a rule matches', () => {
  expect(drained(findingText(['^a{600}$', '^a{600}']))).toEqual({ text: 'a'.repeat(600) })
  expect(drained(findingText(['^a{600}a{425}$']))).toBe('none')
})

describe('a pattern is held at both ends', () => {
  for (const pattern of ['^a$', '^(?:a|b)$', '\\Aa\\z', '^a.*$', '^$', '^a$|^b$', '(?i)^a$', '(^a|^b)$'])
    test(pattern, () => expect(isAnchored(pattern)).toBe(true))
})
describe('a pattern is not held at both ends', () => {
  for (const pattern of ['a', '^a', 'a$', '^a|b$', '^a$|b', '(?m)^a$', '^a\\b', '(^a)?b$', '', '^a$*'])
    test(pattern, () => expect(isAnchored(pattern)).toBe(false))
})
