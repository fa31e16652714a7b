/** Many connections, read in the time of a request's owner. */

import { expect, test } from 'bun:test'
import { manyConnections } from '../../src/auth/stored-connections.ts'
import { allowanceOf } from '../../src/fairness/allowance.ts'
import { createFairness } from '../../src/fairness/fairness.ts'
import { ownerOf } from '../../src/fairness/owner.ts'
import { Paces } from '../../src/fairness/pace.ts'
import type { Connection } from '../../src/model/connection.ts'
import { connectionEntry } from '../../src/storage/connections.ts'
import { withAllowance } from '../support/allowance.ts'
import { clockOf } from '../support/clock.ts'
import { openMemoryStore } from '../support/memory-store.ts'

async function asked(count: number, characters: number, now = () => 0) {
  const store = openMemoryStore()
  const ids = Array.from({ length: count }, (_, i) => `c${i}`)
  const made = ids.filter((_, i) => i % 3 > 0)
  const connection = (connectionId: string) =>
    ({ connectionId, metadata: { text: 'x'.repeat(characters) } }) as unknown as Connection
  await store.commit({ puts: made.map((id) => connectionEntry('acme', connection(id))) })
  let reads = 0
  const counting = {
    getMany(keys: readonly Uint8Array[]) {
      reads += 1
      return store.getMany(keys)
    },
  }
  const time = new Paces(clockOf(now))
  const request = withAllowance(new Request('http://a/'), {}, { ...createFairness(), time })
  const refs = ids.map((connectionId) => ({ namespace: 'acme', connectionId }))
  const found = await manyConnections(counting, request, refs)
  expect(found.map((one) => one?.connection.connectionId)).toEqual(
    ids.map((id) => (made.includes(id) ? id : undefined)),
  )
  return { reads, wait: time.wait(ownerOf(allowanceOf(request).holder)) }
}

test('small ones take no time to speak of', async () => {
  expect(await asked(60, 100)).toEqual({ reads: 3, wait: 0 })
})

test('large ones take their owner’s time', async () => {
  const { reads, wait } = await asked(20, 60_000)
  expect(reads).toBe(1)
  expect(wait).toBeGreaterThan(0)
})

test('those with as much that is sealed as they may have find memory, one part after the other', async () => {
  let now = 0
  // Nobody waits.
  const later = () => {
    now += 60_000
    return now
  }
  expect((await asked(36, 200_000, later)).reads).toBe(2)
})
