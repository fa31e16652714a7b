/** What the store keeps of a revoked token, and for how long. */

import { expect, test } from 'bun:test'
import { revokeToken } from '../../src/auth/revocation.ts'
import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../../src/limits.ts'
import { readRevocation, revocationEntry } from '../../src/storage/directory-records.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
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

test('a revocation is kept for a week after its token, and then deleted with the next one', async () => {
  const store = openMemoryStore()
  const over = nowSeconds - revocationRetentionSeconds
  await store.commit({ puts: [revocationEntry('just over', over - 1), revocationEntry('not yet', over)] })
  await revokeToken(store, 'new', { exp: nowSeconds, nowSeconds })
  const kept = await Promise.all(['just over', 'not yet', 'new'].map((jti) => store.get(keyOf('revocation', jti))))
  expect(kept.map((value) => value !== undefined)).toEqual([false, true, true])
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
