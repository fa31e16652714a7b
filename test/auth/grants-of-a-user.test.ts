/** The grants of one user, read in its own time. */

import { expect, test } from 'bun:test'
import { endGrant, endGrantsOfKeys, type Grant, grantEntry, listGrants } from '../../src/auth/grants.ts'
import { systemClock } from '../../src/clock.ts'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { Paces } from '../../src/fairness/pace.ts'
import { accessTokenSeconds } from '../../src/limits.ts'
import { readRevocation, withIndex } from '../../src/storage/directory-records.ts'
import { keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
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
  await store.commit({ puts: withIndex(grantEntry(grant('ada', 0))) })
  const ends = Array.from({ length: 8 }, () => endGrant(store, 'grant_ada_0', 1))
  expect((await Promise.all(ends)).filter(Boolean)).toHaveLength(1)
  expect(await endGrant(store, 'grant_ada_0', 1)).toBe(false)
})

test('a list takes the time of the grants that are wanted, and not of other users’', async () => {
  const store = openMemoryStore()
  for (const user of ['ada', 'linus'])
    for (let i = 0; i < 60; i += 1) await store.commit({ puts: withIndex(grantEntry(grant(user, i))) })
  const spentOn = async (userId: string | undefined) => {
    const time = new Counted()
    const allowance = allowanceOf(withAllowance(new Request('http://a/'), {}, { ...createFairness(), time }))
    await listGrants(store, 1, { userId, allowance })
    return time.milliseconds
  }
  expect(await spentOn('grace')).toBe(0)
  const own = await spentOn('ada')
  expect(own).toBeGreaterThan(8)
  expect(await spentOn(undefined)).toBeCloseTo(2 * own)
  expect((await listGrants(store, 1, { userId: 'ada' })).map(({ userId }) => userId)).toEqual(Array(60).fill('ada'))
  expect(await listGrants(store, 1)).toHaveLength(120)
  expect(await problemsOf({ store })).toEqual([])
})

test('grants end many in a write: each is a change of the directory', async () => {
  const memory = openMemoryStore()
  let writes = 0
  const store: Store = {
    ...memory,
    commit(write) {
      writes += 1
      return memory.commit(write)
    },
  }
  for (let i = 0; i < 450; i += 1) await memory.commit({ puts: withIndex(grantEntry(grant('ada', i))) })
  const ended = await endGrantsOfKeys(store, { userId: 'ada', keyIds: ['key_ada'] }, 1)
  expect([ended.length, writes, await listGrants(memory, 1)]).toEqual([450, 3, []])
  expect(await problemsOf({ store: memory })).toEqual([])
})

test('those of a key end while somebody uses up the time of their user', async () => {
  const store = openMemoryStore()
  for (let i = 0; i < 10; i += 1) await store.commit({ puts: withIndex(grantEntry(grant('ada', i))) })
  const time = new Paces(systemClock)
  time.pause = () => Promise.reject(new Error('waits'))
  time.spend('ada', 1e6)
  const request = withAllowance(new Request('http://localhost/'), {}, { ...createFairness(), time })
  void allowanceOf(request).belongsTo({ keyId: 'key', family: 'key', userId: 'ada' })
  const ended = await endGrantsOfKeys(store, { userId: 'ada', keyIds: ['key_ada'] }, 1, allowanceOf(request))
  expect(ended).toHaveLength(10)
})

test('those of a key end at any fraction of a second, and what that leaves is whole', async () => {
  const store = openMemoryStore()
  await store.commit({ puts: [grant('ada', 1), grant('grace', 1)].flatMap((one) => withIndex(grantEntry(one))) })
  expect(await endGrantsOfKeys(store, { userId: 'ada', keyIds: ['key_ada', 'key_bob'] }, 1.688)).toEqual([
    'grant_ada_1',
  ])
  expect((await listGrants(store, 1)).map(({ grantId }) => grantId)).toEqual(['grant_grace_1'])
  const value = await store.get(keyOf('revocation', 'grant_ada_1'))
  expect(value && readRevocation(value)).toBe(accessTokenSeconds + 2)
  expect(await problemsOf({ store })).toEqual([])
})
