/** The last reads of connections' lists. */

import { expect, test } from 'bun:test'
import { createLastReads } from '../../../src/features/endpoint/last-reads.ts'
import { until } from '../../support/until.ts'

test('lists that change within a second of a read are read once, when the second is over', async () => {
  let now = 0
  let reads = 0
  const last = createLastReads({ monotonic: () => now })
  const change = () =>
    last.noteChanged('ada/one', () => {
      reads += 1
    })
  change()
  expect(reads).toBe(1)
  last.note('ada/one', 'hash', undefined)
  now = 999
  for (let again = 0; again < 100; again += 1) change()
  expect(reads).toBe(1)
  await until(() => reads === 2)
  last.note('ada/one', 'hash', undefined)
  change()
  // Read meanwhile, for another reason.
  last.note('ada/one', 'hash', undefined)
  now += 1000
  change()
  expect(reads).toBe(3)
})
