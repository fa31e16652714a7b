/** API keys: 256 random bits; the store has only their keyed hash (contract, 2.1). */

import { createHash, createHmac, randomBytes } from 'node:crypto'
import { olderFirst } from '../clock.ts'
import type { Slices } from '../fairness/slices.ts'
import type { ApiKey } from '../model/organization.ts'
import { decideAgain } from '../storage/decide-again.ts'
import {
  apiKeyEntries,
  apiKeyEntry,
  indexKeysOf,
  readApiKey,
  readKeyId,
  withIndex,
} from '../storage/directory-records.ts'
import { everyEntry } from '../storage/every-entry.ts'
import { directoryVersionKey, keyOf, prefixOf } from '../storage/keys.ts'
import type { Entry, Key, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

export function newApiKey(): string {
  return `pst_${randomBytes(32).toString('base64url')}`
}

/** The keyed hash in hex, which is a storage key. Attackers cannot predict it, so look-up times reveal nothing. */
export function apiKeyDigest(pepper: Buffer, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('hex')
}

/**
 * The id of a key of fixtures. It is the same in every load, so tokens minted with the key survive a reload. If another
 * user gets the key, it gets another id: tokens, sessions and links of the former user name the old one.
 */
export function fixtureKeyId(digest: string, userId: string): string {
  return `key_${createHash('sha256').update(`${digest}\0${userId}`).digest('hex').slice(0, 16)}`
}

export interface NewApiKey extends Pick<ApiKey, 'userId' | 'name' | 'operator' | 'organizationId'> {
  /** A key chosen by the user; generated if absent. */
  readonly key?: string
  readonly now: Date
}

/** A new key, with what the store keeps of it beside the directory's version. Only the result has it in the clear. */
export function makeApiKey(pepper: Buffer, { key = newApiKey(), now, ...about }: NewApiKey) {
  const keyId = `key_${randomBytes(9).toString('base64url')}`
  const record: ApiKey = { keyId, ...about, createdAt: now.toISOString(), revokedAt: null }
  return { key, record, puts: apiKeyEntries(record, apiKeyDigest(pepper, key)).flatMap(withIndex) }
}

/** Creates a key, durably. */
export async function createApiKey(store: Store, pepper: Buffer, wanted: NewApiKey) {
  const { key, record, puts } = makeApiKey(pepper, wanted)
  await store.commit({ puts: [...puts, newVersion(directoryVersionKey)] })
  return { key, record }
}

/** The key of this hash, revoked or not; undefined if there is none. */
export async function findApiKey(store: Pick<Store, 'get'>, digest: string): Promise<ApiKey | undefined> {
  const keyId = await store.get(keyOf('apiKeyDigest', digest))
  const record = keyId && (await store.get(keyOf('apiKey', readKeyId(keyId))))
  return record && readApiKey(record)
}

/** All keys, revoked ones included, oldest first. `slices`: of the request that asks for them. */
export async function listApiKeys(store: Store, slices?: Slices): Promise<ApiKey[]> {
  const all = everyEntry(store, prefixOf('apiKey'), slices)
  return (await Array.fromAsync(all, ({ value }) => readApiKey(value))).sort(olderFirst)
}

/** The write that revokes a key. Its record stays, without its place in the list of its organization. */
export function revocationOf(record: ApiKey, now: Date): { readonly puts: Entry[]; readonly deletes: Key[] } {
  return {
    puts: [apiKeyEntry({ ...record, revokedAt: now.toISOString() })],
    deletes: indexKeysOf(apiKeyEntry(record)),
  }
}

/** Revokes a key, and thereby all tokens minted with it. Resolves with false if there is no such key. */
export async function revokeApiKey(store: Store, keyId: string, now: Date): Promise<boolean> {
  return decideAgain(`the API key ${keyId}`, async () => {
    const stored = await store.get(keyOf('apiKey', keyId))
    if (stored === undefined) return false
    const record = readApiKey(stored)
    if (record.revokedAt !== null) return true
    const { puts, deletes } = revocationOf(record, now)
    const committed = await store.commit({
      checks: [{ key: keyOf('apiKey', keyId), value: stored }],
      deletes,
      puts: [...puts, newVersion(directoryVersionKey)],
      fromReserve: 'revocation',
    })
    return committed.ok ? true : 'again'
  })
}
