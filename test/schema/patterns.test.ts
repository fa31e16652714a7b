/** Patterns of policies, matched by RE2 and counted. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { compile, costToAsk, costToCompile, matches } from '../../src/schema/patterns.ts'

test('a pattern costs its compilation once, and then its size for each character', () => {
  const pattern = '^a pattern that no other test has[0-9]$'
  expect(costToCompile(pattern)).toBeGreaterThan(10_000)
  expect(costToAsk(pattern, 'abc')).toBe(costToCompile(pattern))
  const { size } = compile(pattern)
  expect(costToCompile(pattern)).toBe(0)
  expect([costToAsk(pattern, 'abc'), costToAsk(pattern, '')]).toEqual([4 * size, size])
})

test('the results of patterns take little memory, however many patterns and texts there are', () => {
  const used = () => heapStats().heapSize + heapStats().extraMemorySize
  Bun.gc(true)
  const before = used()
  for (let pattern = 0; pattern < 2000; pattern += 1)
    for (let text = 0; text < 100; text += 1)
      matches(String.fromCharCode(0x4e00 + pattern), `${pattern} ${text} ${'\u0101'.repeat(112)}`)
  Bun.gc(true)
  expect((used() - before) / 2 ** 20).toBeLessThan(40)
})
