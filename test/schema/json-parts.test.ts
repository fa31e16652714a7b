/** Parts that are counted while bytes arrive are those that are counted in the whole text. */

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parsingWithin } from '../../src/schema/json.ts'
import { createPartsCounter } from '../../src/schema/json-parts.ts'
import { drained } from '../../src/schema/steps.ts'

test('a bound is passed in pieces where it is passed as a whole', () => {
  const bound = fc.integer({ min: 1, max: 6 })
  const bounds = fc.record({ keysMax: bound, valuesMax: bound, depthMax: bound })
  fc.assert(
    fc.property(fc.json(), bounds, fc.integer({ min: 1, max: 20 }), (text, limits, size) => {
      const counter = createPartsCounter(limits)
      const bytes = Buffer.from(text)
      let told: string | undefined
      for (let at = 0; at < bytes.length && told === undefined; at += size)
        told = counter(bytes.subarray(at, at + size))
      expect(told === undefined).toBe(drained(parsingWithin(text, limits)) !== undefined)
    }),
    { numRuns: 1000 },
  )
})

test('a quote in a comment of an event stream hides nothing of the next line', () => {
  const counter = createPartsCounter({ keysMax: 100, valuesMax: 100, depthMax: 3 })
  expect(counter(Buffer.from(': "\n\ndata: [[[[1]]]]\n\n'))).toBe('is nested deeper than 3')
})
