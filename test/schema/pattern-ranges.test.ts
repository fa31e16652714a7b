import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { patternRangesMax } from '../../src/limits.ts'
import { rangesOf } from '../../src/schema/pattern-ranges.ts'
import { compile, patternProblem, patternsProblem } from '../../src/schema/patterns.ts'

test('classes count as often as they are repeated, groups and their repetitions too', () => {
  const letters = rangesOf('\\pL')
  expect(letters).toBeGreaterThan(600)
  for (const [pattern, least] of [
    ['^\\pL{950}u', 950 * letters],
    ['(?:\\pL{30}){30}', 900 * letters],
    ['((\\pL|a){10}b){20,30}', 300 * letters],
    ['[\\pL\\pN]{2,}', 6 * letters],
    [`[${'一丂丄'.repeat(100)}]{950}`, 300 * 950],
    ['[]\\]a[:alpha:]x]{100}', 1000],
    ['(?:()()){100}', 400],
    ['(?:\\Q)(\\E){1000}', 2000],
    ['a{0,1000}', 2000],
    ['\\Qab', 2],
  ] as const)
    expect({ pattern, ranges: rangesOf(pattern) >= least }).toEqual({ pattern, ranges: true })
  for (const [pattern, most] of [
    ['^a{950}$', 960],
    ['a{3}b{4}c{5}', 15],
    ['^(?:get|list)_[a-z]{1,30}$', 130],
    ['^\\p{Greek}[\\w.-]{2,40}@', 1200],
    ['\\{5000}x', 10],
    ['', 0],
  ] as const)
    expect({ pattern, ranges: rangesOf(pattern) <= most }).toEqual({ pattern, ranges: true })
  // One that is not valid has some number.
  for (const pattern of ['(', ')', '[', '[^', '[\\', '\\', 'a{', '{9}', ')))((('])
    expect(rangesOf(pattern)).toBeLessThan(100)
})

test('no compiled pattern has more instructions than were counted before', () => {
  const { pattern } = fc.letrec<{ char: string; pattern: string }>((tie) => ({
    char: fc.constantFrom(
      'a',
      '.',
      '[a-z]',
      '[^x]',
      '\\d',
      '\\b',
      '^',
      '$',
      '\\Q)\\E',
      '\\Q(\\E',
      '()',
      '(?:)',
      '\\pN',
      '\\x{41}',
    ),
    pattern: fc.oneof(
      { depthSize: 'small' },
      tie('char'),
      fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => a + b),
      fc.tuple(tie('pattern'), tie('pattern')).map(([a, b]) => `(?:${a}|${b})`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{3}', '{0,4}', '{2,}', '{1,5}?', '*?'))
        .map(([a, times]) => `(${a})${times}`),
    ),
  }))
  fc.assert(
    fc.property(pattern, (text) => {
      fc.pre(rangesOf(text) < 5000)
      let size = 0
      try {
        size = compile(text).size
      } catch {
        return
      }
      // Every program begins with one that fails, and ends with one that matches.
      expect(rangesOf(text) + 2).toBeGreaterThanOrEqual(size)
    }),
    { numRuns: 2000 },
  )
})

test('takes time linear in a pattern, and counts what repetitions make infinite', () => {
  // It would take hours if each beginning of a named class looked for an end.
  expect(rangesOf(`[${'[:'.repeat(10_000_000)}`)).toBeGreaterThan(10_000_000)
  expect(rangesOf(`\\pL${'{1000}'.repeat(200)}{1}`)).toBeGreaterThan(patternRangesMax)
})

describe('patterns with too many', () => {
  const many = `^\\pL{${Math.ceil(patternRangesMax / rangesOf('\\pL'))}}x`

  test('are refused before they are compiled, alone and together', () => {
    expect(patternProblem(`${many}y`)).toContain('too costly')
    expect(patternProblem('^\\pL{20}x')).toBeUndefined()
    expect(patternsProblem(['^\\pL{20}x', '^\\PL{20}x'])).toMatchObject({ at: 1 })
    expect(patternsProblem(['^\\pL{12}x', '^\\PL{12}x', '^[a-z]{100}$'])).toBeUndefined()
  })
})
