/** Who opens a setup page (contract, 14.3). */

import { expect, spyOn, test } from 'bun:test'
import { apiKeyDigest, revokeApiKey } from '../../../src/auth/api-key.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import { apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { cookieIn, post } from '../../support/pages.ts'
import { createTestPlatform, issuer } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

test('a ticket that nobody made is told from a good one before the connection is read', async () => {
  const memory = openMemoryStore()
  const key = Buffer.from(keyOf('connection', 'ada', 'far')).toString('latin1')
  let reads = 0
  const store: Store = {
    ...memory,
    getMany(keys) {
      if (keys.some((one) => Buffer.from(one).toString('latin1') === key)) reads += 1
      return memory.getMany(keys)
    },
  }
  await createTestPlatform({ store })
  const platform = await createTestPlatform({
    store,
    upstream: { send: async () => ({ status: 401, headers: {}, body: new Uint8Array() }) },
  })
  const made = await apiOf(platform.fetch, sampleKeys.ada)('PUT /connect/ada/far', {
    mcpUrl: 'https://far.example.com/mcp',
  })
  const path = (made.body.status.setupUrl as string).slice(issuer.length)
  const open = async (of: string) => {
    reads = 0
    const { status } = await platform.fetch(of)
    return { status, isRead: reads > 0 }
  }
  expect(await open(path)).toEqual({ status: 200, isRead: true })
  const changed = `${path.slice(0, -6)}${path.endsWith('AAAAAA') ? 'BBBBBB' : 'AAAAAA'}`
  expect(await open(changed)).toEqual({ status: 303, isRead: false })
  // Of another connection.
  expect((await open(path.replace('/far/', '/near/'))).status).toBe(303)
})

test('a session that ends while its visit waits for its owner’s time opens nothing', async () => {
  const platform = await createTestPlatform({
    upstream: { send: async () => ({ status: 401, headers: {}, body: new Uint8Array() }) },
  })
  await apiOf(platform.fetch, sampleKeys.ada)('PUT /connect/ada/far', { mcpUrl: 'https://far.example.com/mcp' })
  const cookie = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  const open = () => platform.fetch('/connect/ada/far/setup', { headers: { cookie } })
  expect((await open()).status).toBe(200)
  const keyId = await platform.store.get(keyOf('apiKeyDigest', apiKeyDigest(platform.pepper, sampleKeys.ada)))
  using pause = spyOn(platform.fairness.time, 'pause').mockImplementation(async () => {
    await revokeApiKey(platform.store, Buffer.from(keyId ?? '').toString(), new Date(platform.now))
  })
  expect((await open()).status).toBe(303)
  expect(pause).toHaveBeenCalled()
})
