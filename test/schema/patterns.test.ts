/** Patterns of policies, matched by RE2 and counted. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { compile, costToAsk, costToCompile, matches } from '../../src/schema/patterns.ts'
import { random } from '../support/random.ts'

test('a pattern costs its compilation once, and then its size for each character', () => {
  const pattern = '^a pattern that no other test has[0-9]$'
  expect(costToCompile(pattern)).toBeGreaterThan(10_000)
  expect(costToAsk(pattern, 'abc')).toBe(costToCompile(pattern))
  const { size } = compile(pattern)
  expect(costToCompile(pattern)).toBe(0)
  expect([costToAsk(pattern, 'abc'), costToAsk(pattern, '')]).toEqual([4 * size, size])
})

/** Megabytes that are in use after some work, and were not before. */
function grown(work: () => void): number {
  const used = () => {
    Bun.gc(true)
    return heapStats().heapSize + heapStats().extraMemorySize
  }
  const before = used()
  work()
  return (used() - before) / 2 ** 20
}

test('compiled patterns take little memory together', () => {
  const all = grown(() => {
    for (let pattern = 0; pattern < 4000; pattern += 1) matches(`^(a${pattern}|b)[a-z]{1,20}$`, 'abc')
  })
  expect(all).toBeLessThan(30)
})

test('a pattern takes no memory for the texts that it was matched with', () => {
  const one = grown(() => {
    const chance = random(7)
    const text = () => Array.from({ length: 1000 }, () => chance.pick(['a', 'b'])).join('')
    for (let times = 0; times < 1000; times += 1) matches('(a|b)*a[ab]{14}$', text())
  })
  expect(one).toBeLessThan(2)
})
