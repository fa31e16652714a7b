/** The canonical form of large values is written in steps; what it is, the record of calls tests with vectors. */

import { expect, test } from 'bun:test'
import { writingCanonical } from '../../src/schema/canonical-json.ts'

test('works in steps, however its values are nested, and gives the same text', () => {
  const ones = Array(50).fill(1)
  const values = [
    [Array(20_000).fill('x'), `[${Array(20_000).fill('"x"').join()}]`],
    [Array.from({ length: 200 }, () => ({ b: ones, a: [] })), `[${Array(200).fill(`{"a":[],"b":[${ones}]}`).join()}]`],
  ] as const
  for (const [value, text] of values) {
    const steps = writingCanonical(value)
    let taken = 0
    let step = steps.next()
    for (; !step.done; step = steps.next()) taken += 1
    expect(taken).toBeGreaterThanOrEqual(5)
    expect(step.value).toBe(text)
  }
})
