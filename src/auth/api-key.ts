/** API keys: 256 bits of randomness, of which only a keyed hash is stored (contract 2). */

import { createHmac, randomBytes } from 'node:crypto'
import { apiKeyCharsMax, apiKeyCharsMin, apiKeysPerRead } from '../limits.ts'
import type { ApiKey } from '../model/registry.ts'
import { apiKeyKey, apiKeys, prefixRange, registryVersionKey } from '../storage/keys.ts'
import { apiKeyDigestEntry, apiKeyEntry, readApiKey } from '../storage/registry-records.ts'
import type { Entry, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

export function newApiKey(): string {
  return `pst_${randomBytes(32).toString('base64url')}`
}

/** What is wrong with a key that somebody chose, or undefined. Its characters are those a header can carry. */
export function chosenKeyProblem(key: string): string | undefined {
  if (key.length < apiKeyCharsMin) return `must have at least ${apiKeyCharsMin} characters`
  if (key.length > apiKeyCharsMax) return `must have at most ${apiKeyCharsMax} characters`
  if (!/^[A-Za-z0-9._~+/-]+=*$/.test(key)) return 'must be made of letters, digits and . _ ~ + / - only'
  return undefined
}

/** Hex. Looked up as a storage key: an attacker cannot steer it, so the look-up's time tells nothing. */
export function apiKeyDigest(pepper: Buffer, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('hex')
}

/** The two entries of a key: its record by id, and its id by digest. */
export function apiKeyEntries(record: ApiKey, digest: string): Entry[] {
  return [apiKeyEntry(record), apiKeyDigestEntry(digest, record.keyId)]
}

export interface NewApiKey {
  readonly userId: string
  readonly name: string | null
  readonly operator: boolean
  /** A key of the user's own choice; made up when absent. */
  readonly key?: string
  readonly now: Date
}

/** Stores a new key and gives it back: the only time it is seen. */
export async function createApiKey(
  store: Store,
  pepper: Buffer,
  wanted: NewApiKey,
): Promise<{ key: string; record: ApiKey }> {
  const key = wanted.key ?? newApiKey()
  const record: ApiKey = {
    keyId: `key_${randomBytes(9).toString('base64url')}`,
    name: wanted.name,
    userId: wanted.userId,
    operator: wanted.operator,
    createdAt: wanted.now.toISOString(),
    revokedAt: null,
  }
  const puts = [...apiKeyEntries(record, apiKeyDigest(pepper, key)), newVersion(registryVersionKey)]
  await store.commit({ puts })
  return { key, record }
}

/** All keys, oldest first, the revoked ones too. */
export async function listApiKeys(store: Store): Promise<ApiKey[]> {
  const records: ApiKey[] = []
  let { gte, lt } = prefixRange(apiKeys)
  for (let more = true; more; ) {
    const page = await store.range({ gte, lt, limit: apiKeysPerRead })
    for (const { value } of page.entries) records.push(readApiKey(value))
    const last = page.entries.at(-1)
    if (last !== undefined) gte = Buffer.concat([last.key, Buffer.of(0)])
    more = page.more
  }
  return records.sort((a, b) => a.createdAt.localeCompare(b.createdAt))
}

/** Revokes a key, and with it every token minted with it. False when there is no such key. */
export async function revokeApiKey(store: Store, keyId: string, now: Date): Promise<boolean> {
  for (;;) {
    const stored = await store.get(apiKeyKey(keyId))
    if (stored === undefined) return false
    const record = readApiKey(stored)
    if (record.revokedAt !== null) return true
    const revoked: ApiKey = { ...record, revokedAt: now.toISOString() }
    const committed = await store.commit({
      checks: [{ key: apiKeyKey(keyId), value: stored }],
      puts: [apiKeyEntry(revoked), newVersion(registryVersionKey)],
      fromReserve: true,
    })
    if (committed.ok) return true
  }
}
