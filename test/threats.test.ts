/**
 * The threats that the platform stands against (`threats.json`), each with its control and the tests that show it. That
 * those ran and passed is for the end of `make test` to say (`results/check.ts`).
 */

import { expect, test } from 'bun:test'
import threats from './threats.json' with { type: 'json' }

test('every threat has a row of its own, numbered within its letter', () => {
  const letters = ['K', 'T', 'L', 'R', 'D', 'F', 'S', 'P', 'E', 'C']
  const counts = letters.map((letter) => threats.filter(({ row }) => row.startsWith(letter)).length)
  expect(threats.map(({ row }) => row)).toEqual(
    letters.flatMap((letter, at) => Array.from({ length: counts[at] ?? 0 }, (_, i) => `${letter}${i + 1}`)),
  )
  expect(Math.min(...counts)).toBeGreaterThan(6)
})

test('every threat names tests, and each once', () => {
  for (const { row, tests } of threats) {
    expect({ row, isNamed: tests.length > 0, count: new Set(tests).size }).toEqual({
      row,
      isNamed: true,
      count: tests.length,
    })
  }
})
