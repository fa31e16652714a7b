/** Patterns of policies, matched by RE2 and counted. */

import { expect, test } from 'bun:test'
import { compile, costToAsk, costToCompile } from '../../src/schema/patterns.ts'

test('a pattern costs its compilation once, and then its size for each character', () => {
  const pattern = '^a pattern that no other test has[0-9]$'
  expect(costToCompile(pattern)).toBeGreaterThan(10_000)
  expect(costToAsk(pattern, 'abc')).toBe(costToCompile(pattern))
  const { size } = compile(pattern)
  expect(costToCompile(pattern)).toBe(0)
  expect([costToAsk(pattern, 'abc'), costToAsk(pattern, '')]).toEqual([4 * size, size])
})
