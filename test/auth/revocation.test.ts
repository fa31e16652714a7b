/** What the store keeps of a revoked token, and for how long. */

import { expect, test } from 'bun:test'
import { revokeToken, sweepRevocations } from '../../src/auth/revocation.ts'
import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../../src/limits.ts'
import { readRevocation, revocationEntry } from '../../src/storage/directory-records.ts'
import { directoryVersionKey, keyOf, prefixOf, prefixRange } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const nowSeconds = 1_800_000_000

test('a revocation lasts as long as its token may: until it expires, or the longest lifetime from now', async () => {
  const store = openMemoryStore()
  const until = async (jti: string) => readRevocation(await store.get(keyOf('revocation', jti)))
  await revokeToken(store, 'known', { exp: nowSeconds + 5, nowSeconds })
  await revokeToken(store, 'unknown', { exp: undefined, nowSeconds })
  expect([await until('known'), await until('unknown'), await until('none')]).toEqual([
    nowSeconds + 5,
    nowSeconds + tokenLifetimeMaxSeconds,
    0,
  ])
})

test('a revocation is kept for a week after its token, and deleted then, however many stand before it', async () => {
  const store = openMemoryStore()
  const over = nowSeconds - revocationRetentionSeconds
  const live = Array.from({ length: 1500 }, (_, index) => revocationEntry(`a${index}`, over))
  const old = Array.from({ length: 1500 }, (_, index) => revocationEntry(`b${index}`, over - 1))
  await store.commit({ puts: [...live, ...old] })
  const deletedAtOnce: number[] = []
  const commit: Store['commit'] = (write) => {
    deletedAtOnce.push([...(write.deletes ?? [])].length)
    return store.commit(write)
  }
  await sweepRevocations({ ...store, commit }, nowSeconds)
  const { keys } = await store.keys({ ...prefixRange(prefixOf('revocation')), limit: 5000 })
  expect(keys).toEqual(live.map(({ key }) => key).sort(Buffer.compare))
  // A database makes a load of more than 500, under a lock that everybody waits for.
  expect(Math.max(...deletedAtOnce)).toBeLessThan(500)
})

test('a revocation may use the room that is kept for it, and changes the directory', async () => {
  const memory = openMemoryStore()
  const isFromReserve: unknown[] = []
  const store: Store = {
    ...memory,
    async commit(change) {
      isFromReserve.push(change.fromReserve)
      return memory.commit(change)
    },
  }
  await revokeToken(store, 'one', { exp: nowSeconds, nowSeconds })
  const version = await memory.get(directoryVersionKey)
  await revokeToken(store, 'two', { exp: nowSeconds, nowSeconds })
  expect(isFromReserve).toEqual(['revocation', 'revocation'])
  expect(version).toBeDefined()
  expect(await memory.get(directoryVersionKey)).not.toEqual(version)
})
