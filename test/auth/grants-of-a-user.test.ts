/** The grants of one user, read in its own time. */

import { expect, test } from 'bun:test'
import { endGrant, endGrantsOfKeys, type Grant, grantEntry, listGrants } from '../../src/auth/grants.ts'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { accessTokenSeconds } from '../../src/limits.ts'
import { readRevocation } from '../../src/storage/directory-records.ts'
import { keyOf } from '../../src/storage/keys.ts'
import { withAllowance } from '../support/allowance.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { problemsOf } from '../support/platform.ts'

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

test('of several that end a grant at once, one has ended it', async () => {
  const store = openMemoryStore()
  await store.commit({ puts: [grantEntry(grant('ada', 0))] })
  const ends = Array.from({ length: 8 }, () => endGrant(store, 'grant_ada_0', 1))
  expect((await Promise.all(ends)).filter(Boolean)).toHaveLength(1)
  expect(await endGrant(store, 'grant_ada_0', 1)).toBe(false)
})

test('a list takes the time of reading everybody’s grants, and of parsing those that are wanted', async () => {
  const store = openMemoryStore()
  for (const user of ['ada', 'linus'])
    for (let i = 0; i < 60; i += 1) await store.commit({ puts: [grantEntry(grant(user, i))] })
  const spentOn = async (of: { readonly userId: string } | { readonly keyIds: readonly string[] }) => {
    const time = new Counted()
    const allowance = allowanceOf(withAllowance(new Request('http://a/'), {}, { ...createFairness(), time }))
    await listGrants(store, 1, { of, allowance })
    return time.milliseconds
  }
  const spentOnReading = await spentOn({ userId: 'grace' })
  expect(spentOnReading).toBeGreaterThan(1)
  expect(await spentOn({ keyIds: ['key_bob', 'key_ada'] })).toBeGreaterThan(spentOnReading + 8)
  // The tools of a grant may be called like a key.
  await store.commit({ puts: [grantEntry({ ...grant('ada', 60), tools: ['"keyId":"key_eve"', 'key_eve'] })] })
  expect(await spentOn({ keyIds: ['key_eve'] })).toBeLessThan(spentOnReading + 0.5)
  expect((await listGrants(store, 1, { of: { userId: 'ada' } })).map(({ userId }) => userId)).toEqual(
    Array(61).fill('ada'),
  )
  expect(await listGrants(store, 1)).toHaveLength(121)
})

test('those of a key end at any fraction of a second, and what that leaves is whole', async () => {
  const store = openMemoryStore()
  await store.commit({ puts: [grantEntry(grant('ada', 1)), grantEntry(grant('grace', 1))] })
  expect(await endGrantsOfKeys(store, ['key_ada', 'key_bob'], 1.688)).toEqual(['grant_ada_1'])
  expect((await listGrants(store, 1)).map(({ grantId }) => grantId)).toEqual(['grant_grace_1'])
  const value = await store.get(keyOf('revocation', 'grant_ada_1'))
  expect(value && readRevocation(value)).toBe(accessTokenSeconds + 2)
  expect(await problemsOf({ store })).toEqual([])
})
