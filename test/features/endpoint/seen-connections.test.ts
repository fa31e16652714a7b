/** The connections that a caller sees, in many namespaces. */

import { expect, spyOn, test } from 'bun:test'
import type { RequestContext } from '../../../src/auth/authorizer.ts'
import { createFairness } from '../../../src/fairness/fairness.ts'
import type { Turns } from '../../../src/fairness/turns.ts'
import { connectionIds } from '../../../src/features/endpoint/seen-connections.ts'
import { readPolicy } from '../../../src/policy/block.ts'
import { withAllowance } from '../../support/allowance.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { notedTurns } from '../../support/noted-turns.ts'

test('namespaces that are looked into one after another take turns, however short each is', async () => {
  let turns = 0
  const noted = notedTurns(() => {
    turns += 1
  }) as Turns
  const request = withAllowance(new Request('http://localhost/'), {}, { ...createFairness(), turns: noted })
  const read = readPolicy([{ metadata: [{ team: 'a' }, { team: 'b' }] }])
  if ('problem' in read) throw new Error(read.problem.message)
  const narrowed = { caller: { blocks: read.blocks }, request } as unknown as RequestContext
  const all = { caller: { blocks: [] }, request } as unknown as RequestContext
  let now = performance.now()
  const clock = spyOn(performance, 'now').mockImplementation(() => {
    now += 0.2
    return now
  })
  try {
    for (const context of [narrowed, all]) {
      turns = 0
      for (let i = 0; i < 100; i += 1) await connectionIds(openMemoryStore(), context, `n${i}`, { from: '', most: 10 })
      expect(turns).toBeGreaterThan(5)
    }
  } finally {
    clock.mockRestore()
  }
})
