/** The choices of a consent page, which are made in turns. */

import { expect, test } from 'bun:test'
import { toolChoices } from '../../../src/features/authorization/consent-page.ts'
import { sliceCost } from '../../../src/limits.ts'

test('each tool is a step, which costs what it says of itself', () => {
  const claim = { description: '\u200b'.repeat(160), risk: 'only reads' }
  const tools = Array.from({ length: 200 }, (_, index) => ({ name: `t${index}`, claims: Array(5).fill(claim) }))
  const work = toolChoices(tools)
  let [steps, cost] = [0, 0]
  let step = work.next()
  for (; !step.done; step = work.next()) {
    steps += 1
    cost += step.value
  }
  expect(steps).toBe(200)
  // Some ninety milliseconds.
  expect(cost / sliceCost).toBeGreaterThan(20)
  expect(step.value).toHaveLength(200)
  expect(step.value[0]?.text).toContain('name="tool" value="t0"> t0<small>')
})
