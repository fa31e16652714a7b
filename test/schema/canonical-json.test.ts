/** The canonical form of large values is written in steps; what it is, the record of calls tests with vectors. */

import { expect, test } from 'bun:test'
import { canonicalJson, writingCanonical } from '../../src/schema/canonical-json.ts'

test('works in steps, however its values are nested, and gives the same text', () => {
  const values = [Array(20_000).fill('x'), Array.from({ length: 200 }, () => ({ b: Array(50).fill(1), a: [] }))]
  for (const value of values) {
    const steps = writingCanonical(value)
    let taken = 0
    let step = steps.next()
    for (; !step.done; step = steps.next()) taken += 1
    expect(taken).toBeGreaterThanOrEqual(5)
    expect(step.value).toBe(canonicalJson(value))
  }
})
