import { describe, expect, test } from 'bun:test'
import { patternRangesMax } from '../../src/limits.ts'
import { rangesOf } from '../../src/schema/pattern-ranges.ts'
import { patternProblem, patternsProblem } from '../../src/schema/patterns.ts'

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
  ] as const)
    expect({ pattern, ranges: rangesOf(pattern) >= least }).toEqual({ pattern, ranges: true })
  for (const [pattern, most] of [
    ['^a{950}$', 960],
    ['a{3}b{4}c{5}', 15],
    ['^(?:get|list)_[a-z]{1,30}$', 50],
    ['^\\p{Greek}[\\w.-]{2,40}@', 1200],
    ['\\{5000}x', 10],
    ['', 0],
  ] as const)
    expect({ pattern, ranges: rangesOf(pattern) <= most }).toEqual({ pattern, ranges: true })
  // One that is not valid has some number.
  for (const pattern of ['(', ')', '[', '[^', '[\\', '\\', 'a{', '{9}', ')))((('])
    expect(rangesOf(pattern)).toBeLessThan(100)
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
