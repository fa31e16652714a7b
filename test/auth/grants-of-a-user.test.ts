/** The grants of one user, read in its own time. */

import { expect, test } from 'bun:test'
import { type Grant, grantEntry, listGrants } from '../../src/auth/grants.ts'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { withAllowance } from '../support/allowance.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const tools = Array.from({ length: 200 }, (_, i) => `${i}`.padStart(60, 'x'))
const grant = (userId: string, index: number): Grant => ({
  ...{ grantId: `grant_${userId}_${index}`, userId, keyId: `key_${userId}`, clientId: 'c', client: 'c', tools },
  ...{ namespace: 'acme', madeAt: '2026-01-01T00:00:00.000Z', createdAt: '2026-01-01T00:00:00.000Z', expires: 10 },
})

/** Nobody waits; what is spent is counted. */
class Counted extends Paces {
  milliseconds = 0
  override wait = () => 0
  override spend(_: string, milliseconds: number): void {
    this.milliseconds += milliseconds
  }
}

test('a list takes the time of those that are wanted, and not of others', async () => {
  const store = openMemoryStore()
  for (const user of ['ada', 'linus'])
    for (let i = 0; i < 60; i += 1) await store.commit({ puts: [grantEntry(grant(user, i))] })
  const spentOn = async (of: { readonly userId: string } | { readonly keyIds: readonly string[] }) => {
    const time = new Counted()
    const allowance = allowanceOf(withAllowance(new Request('http://a/'), {}, { ...createFairness(), time }))
    await listGrants(store, 1, { of, allowance })
    return time.milliseconds
  }
  expect(await spentOn({ userId: 'grace' })).toBe(0)
  expect(await spentOn({ keyIds: ['key_bob', 'key_ada'] })).toBeGreaterThan(8)
  // The tools of a grant may be called like a key.
  await store.commit({ puts: [grantEntry({ ...grant('ada', 60), tools: ['"keyId":"key_eve"', 'key_eve'] })] })
  expect(await spentOn({ keyIds: ['key_eve'] })).toBe(0)
  expect((await listGrants(store, 1, { of: { userId: 'ada' } })).map(({ userId }) => userId)).toEqual(
    Array(61).fill('ada'),
  )
  expect(await listGrants(store, 1)).toHaveLength(121)
})
