import { describe, expect, test } from 'bun:test'
import { apiKeyDigest, createApiKey, listApiKeys, newApiKey, revokeApiKey } from '../../src/auth/api-key.ts'
import type { ApiKey } from '../../src/model/organization.ts'
import { apiKeyEntry, readApiKey } from '../../src/storage/directory-records.ts'
import { smallPerRead } from '../../src/storage/every-entry.ts'
import { keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform, seed } from '../support/platform.ts'

test('ten thousand keys: each 256 bits of its own, and no bit that is always the same', () => {
  const keys = Array.from({ length: 10_000 }, () => newApiKey())
  expect(new Set(keys).size).toBe(keys.length)
  const ones = new Uint32Array(256)
  for (const key of keys) {
    expect(key).toMatch(/^pst_[A-Za-z0-9_-]{43}$/)
    const bytes = Buffer.from(key.slice(4), 'base64url')
    for (let bit = 0; bit < 256; bit += 1)
      ones[bit] = (ones[bit] as number) + (((bytes[bit >> 3] as number) >> (bit & 7)) & 1)
  }
  // Ten standard deviations: a fair bit is never out of this.
  for (const count of ones) expect(Math.abs(count - 5000)).toBeLessThan(500)
})

test('a credential is looked up by its keyed digest and compared with nothing, so a near miss is like any other', async () => {
  const asked: string[] = []
  const memory = openMemoryStore()
  const store: Store = {
    ...memory,
    async get(key) {
      if (key[0] === 'h'.charCodeAt(0)) asked.push(Buffer.from(key).toString())
      return memory.get(key)
    },
  }
  const platform = await createTestPlatform({ store })
  asked.length = 0
  const key = 'sample-key-ada-owner-of-northwind-0001'
  const near = [`${key.slice(0, -1)}2`, `x${key.slice(1)}`]
  for (const credential of near) {
    await platform.fetch('/connect/ada', { headers: { authorization: `Bearer ${credential}` } })
  }
  expect(asked).toEqual(
    near.map((one) => Buffer.from(keyOf('apiKeyDigest', apiKeyDigest(platform.pepper, one))).toString()),
  )
  // Half of the bits differ, wherever the one character is.
  const bits = (text: string) => [...Buffer.from(apiKeyDigest(seed('pepper'), text), 'hex')]
  const distance = bits(near[0] as string).reduce(
    (sum, byte, i) => sum + ((byte ^ (bits(key)[i] as number)).toString(2).match(/1/g)?.length ?? 0),
    0,
  )
  expect(Math.abs(distance - 128)).toBeLessThan(60)
})

test('a list of keys has all of them, however many are read at once', async () => {
  const store = openMemoryStore()
  const count = 2 * smallPerRead + 1
  const record = (i: number): ApiKey => ({
    keyId: `key_${String(i).padStart(6, '0')}`,
    name: null,
    userId: 'ada',
    operator: false,
    createdAt: new Date(i).toISOString(),
    revokedAt: null,
  })
  await store.commit({ puts: Array.from({ length: count }, (_, i) => apiKeyEntry(record(i))) })
  expect((await listApiKeys(store)).map(({ keyId }) => keyId)).toEqual(
    Array.from({ length: count }, (_, i) => record(i).keyId),
  )
})

describe('a key that is revoked', () => {
  const wanted = { userId: 'ada', name: null, operator: false, now: new Date(0) }
  const stored = async (store: Store, keyId: string) =>
    readApiKey((await store.get(keyOf('apiKey', keyId))) as Uint8Array)

  test('is one from then on, and the second time changes nothing', async () => {
    const store = openMemoryStore()
    const { record } = await createApiKey(store, seed('pepper'), wanted)
    expect(record.keyId).toMatch(/^key_[\w-]{12}$/)
    expect(await revokeApiKey(store, 'key_none', new Date(1))).toBe(false)
    expect((await stored(store, record.keyId)).revokedAt).toBeNull()
    expect(await revokeApiKey(store, record.keyId, new Date(1000))).toBe(true)
    expect(await revokeApiKey(store, record.keyId, new Date(2000))).toBe(true)
    expect((await stored(store, record.keyId)).revokedAt).toBe(new Date(1000).toISOString())
  })

  test('is revoked also where somebody writes it at the same moment, whose write stays', async () => {
    const memory = openMemoryStore()
    const { record } = await createApiKey(memory, seed('pepper'), wanted)
    const isFromReserve: unknown[] = []
    const store: Store = {
      ...memory,
      async commit(change) {
        isFromReserve.push(change.fromReserve)
        const isFirst = isFromReserve.length === 1
        if (isFirst) await memory.commit({ puts: [apiKeyEntry({ ...record, name: 'renamed' })] })
        return memory.commit(change)
      },
    }
    expect(await revokeApiKey(store, record.keyId, new Date(1000))).toBe(true)
    // Also where there is room for nothing else.
    expect(isFromReserve).toEqual(['revocation', 'revocation'])
    expect(await stored(memory, record.keyId)).toMatchObject({
      name: 'renamed',
      revokedAt: new Date(1000).toISOString(),
    })
  })
})
