/** The API keys of the sample fixtures: they are published with the source, so everybody has them. */

import keys from '../../../fixtures/keys.json' with { type: 'json' }
import { apiKeyDigest } from '../../auth/api-key.ts'
import { isLive } from '../../auth/authenticate.ts'
import { apiKeyDigestKey, apiKeyKey } from '../../storage/keys.ts'
import { readApiKey } from '../../storage/registry-records.ts'
import { asBuffer, type Store } from '../../storage/store.ts'

const sampleKeys: readonly string[] = keys.apiKeys.map(({ key }) => key)

/** Is one of these keys of fixtures a sample key? */
export function hasSampleKey(apiKeys: readonly { readonly key: string }[]): boolean {
  return apiKeys.some(({ key }) => sampleKeys.includes(key))
}

/** Does a sample key open anything in this store? */
export async function acceptsSampleKey(store: Store, pepper: Buffer): Promise<boolean> {
  for (const key of sampleKeys) {
    const keyId = await store.get(apiKeyDigestKey(apiKeyDigest(pepper, key)))
    const record = keyId === undefined ? undefined : await store.get(apiKeyKey(asBuffer(keyId).toString()))
    if (record !== undefined && isLive(readApiKey(record))) return true
  }
  return false
}
