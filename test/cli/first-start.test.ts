/** The operator key of a first start. */

import { expect, test } from 'bun:test'
import { listApiKeys } from '../../src/auth/api-key.ts'
import type { Secrets } from '../../src/auth/secrets.ts'
import { firstStart } from '../../src/cli/first-start.ts'
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

test('a key that the environment gives is not shown', async () => {
  const { store, secrets } = folder()
  expect(await firstStart({ store, secrets }, 'a-key-of-the-operator-of-32-characters', log)).toBeUndefined()
  expect(await listApiKeys(store)).toHaveLength(1)
})
