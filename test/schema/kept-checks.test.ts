/** Compiled schemas that are kept. */

import { expect, test } from 'bun:test'
import { keptCheckOf } from '../../src/schema/kept-checks.ts'
import { drained } from '../../src/schema/steps.ts'

test('a schema counts with its texts, which cost nothing to compile', () => {
  const schemas = Array.from({ length: 30 }, (_, index) => ({
    type: 'object',
    description: `${index}${'x'.repeat(10 ** 6)}`,
  }))
  const checks = schemas.map((schema) => drained(keptCheckOf(schema, 'arguments')))
  // Compiled again where it is not kept any more: of 30 MB there are twelve at the most.
  const kept = schemas.filter((schema, index) => drained(keptCheckOf(schema, 'arguments')) === checks[index])
  expect(kept.length).toBeLessThanOrEqual(12)
  const last = schemas.at(-1) ?? {}
  expect(drained(keptCheckOf(last, 'arguments'))).toBe(drained(keptCheckOf(last, 'arguments')))
})

test('the code is written in one turn, and run for the first time in another', () => {
  const costs = [...keptCheckOf({ required: ['code'] }, 'arguments')]
  expect(costs).toEqual([expect.any(Number), costs[0] as number])
  expect([...keptCheckOf({ required: ['code'] }, 'arguments')]).toEqual([])
})

test('a schema with too many keywords is neither written nor hashed', () => {
  let written = 0
  const properties = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`p${index}`, {}]))
  const schema = { type: 'object', properties, toJSON: () => (written += 1) }
  for (let times = 0; times < 2; times += 1) expect(() => drained(keptCheckOf(schema, 'arguments'))).toThrow('keywords')
  expect(written).toBe(0)
})
