/** The operator key of a first start. */

import { expect, test } from 'bun:test'
import { createApiKey, listApiKeys, revokeApiKey } from '../../src/auth/api-key.ts'
import type { Secrets } from '../../src/auth/secrets.ts'
import { firstStart } from '../../src/cli/first-start.ts'
import type { Store } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { seed } from '../support/platform.ts'

const log = { info() {}, warn() {}, error() {} }
const folder = () => ({ store: openMemoryStore(), secrets: { apiKeyPepper: seed('pepper') } as Secrets })

test('of many starts at once one makes a key, and shows it', async () => {
  const { store, secrets } = folder()
  const shown = await Promise.all(Array.from({ length: 8 }, () => firstStart({ store, secrets }, undefined, log)))
  expect(shown.filter((key) => key !== undefined)).toEqual([expect.stringMatching(/^pst_/)])
  expect(await listApiKeys(store)).toMatchObject([{ userId: 'operator', operator: true }])
  expect(await firstStart({ store, secrets }, undefined, log)).toBeUndefined()
})

test('a key that the environment gives may be there already, as an operator’s', async () => {
  const key = 'a-key-of-the-operator-of-32-characters'
  const made = (store: Store, operator: boolean) =>
    createApiKey(store, seed('pepper'), { key, userId: 'eve', name: null, operator, now: new Date(0) })
  const moved = folder()
  await made(moved.store, true)
  expect(await firstStart(moved, key, log)).toBeUndefined()
  expect(await listApiKeys(moved.store)).toHaveLength(1)
  expect(await firstStart(moved, key, log)).toBeUndefined()
  const revoked = folder()
  await revokeApiKey(revoked.store, (await made(revoked.store, true)).record.keyId, new Date(0))
  await expect(firstStart(revoked, key, log)).rejects.toThrow('is also an API key that was revoked (key_')
  const nobodys = folder()
  await made(nobodys.store, false)
  await expect(firstStart(nobodys, key, log)).rejects.toThrow('is also an API key of somebody who is no operator (key_')
})

test('a key that the environment gives is not shown', async () => {
  const { store, secrets } = folder()
  expect(await firstStart({ store, secrets }, 'a-key-of-the-operator-of-32-characters', log)).toBeUndefined()
  expect(await listApiKeys(store)).toHaveLength(1)
})
