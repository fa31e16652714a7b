/** Texts of others that are kept. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { cutText, shorten } from '../../src/schema/cut-text.ts'

test('a text is cut to so many characters', () => {
  expect([cutText('abc', 4), cutText('abc', 3), cutText('abc', 2), cutText('', 2)]).toEqual(['abc', 'abc', 'ab', ''])
})

test('an ellipsis shows that a text was cut, and counts', () => {
  expect([shorten('abc', 4), shorten('abc', 3), shorten('abc', 2)]).toEqual(['abc', 'abc', 'a…'])
  expect(shorten('x'.repeat(1000))).toBe(`${'x'.repeat(199)}…`)
})

test('the beginning of a long text does not keep the rest in memory', () => {
  const kept: string[] = []
  Bun.gc(true)
  const before = heapStats().heapSize + heapStats().extraMemorySize
  for (let i = 0; i < 100; i += 1) kept.push(cutText(JSON.parse(`"${i}${'x'.repeat(2 ** 20)}"`), 100))
  Bun.gc(true)
  expect(heapStats().heapSize + heapStats().extraMemorySize - before).toBeLessThan(2 ** 24)
  expect(kept).toHaveLength(100)
})
