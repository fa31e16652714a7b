/** Tools of an endpoint as the consent page shows them. */

import { expect, test } from 'bun:test'
import { inSlices } from '../../../src/fairness/turns.ts'
import { claimsIn } from '../../../src/features/endpoint/endpoint-tools.ts'

const reads = { readOnlyHint: true }
const listed = (connectionId: string, description: string, annotations: object = {}) => ({
  ...{ size: 1, connectionId },
  definition: { name: 'cancel', description, annotations },
})

test('one name shows what each server claims of it, the gravest first', async () => {
  const all = [
    listed('a', 'Looks.', reads),
    listed('b', 'Changes it.', { destructiveHint: false }),
    listed('c', 'Cancels it.'),
    listed('d', 'Looks.', reads),
    listed('e', 'Looks.'),
  ]
  expect(await inSlices(claimsIn(all))).toEqual([
    { description: 'c: Cancels it.', risk: 'may change or delete data' },
    { description: 'e: Looks.', risk: 'may change or delete data' },
    { description: 'b: Changes it.', risk: 'changes data, and deletes none' },
    { description: 'a, d: Looks.', risk: 'only reads' },
  ])
})

test('of very many different claims the last show their connections and their gravest risk', async () => {
  const all = Array.from({ length: 12 }, (_, index) => listed(`c${index}`, `${index}`, index < 11 ? {} : reads))
  const claims = await inSlices(claimsIn(all))
  expect(claims).toHaveLength(11)
  expect(claims.at(-1)).toEqual({ description: 'c10, c11: other words', risk: 'may change or delete data' })
})

test('of many connections that say the same, five are named', async () => {
  const all = Array.from({ length: 90 }, (_, index) => listed(`c${index}`, 'Looks.', reads))
  const [claim] = await inSlices(claimsIn(all))
  expect(claim?.description).toBe('c0, c1, c2, c3, c4 and 85 more: Looks.')
})
