/** The API keys of the sample fixtures. They are published with the source, so they are publicly known. */

import keys from '../../../fixtures/keys.json' with { type: 'json' }
import { apiKeyDigest } from '../../auth/api-key.ts'
import { isLive } from '../../auth/authenticate.ts'
import { textOf } from '../../storage/bytes.ts'
import { readApiKey } from '../../storage/directory-records.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'

const sampleKeys: readonly string[] = keys.apiKeys.map(({ key }) => key)

/** True if one of these fixture keys is a sample key. */
export function hasSampleKey(apiKeys: readonly { readonly key: string }[]): boolean {
  return apiKeys.some(({ key }) => sampleKeys.includes(key))
}

/** True if the store accepts a sample key. `pepper` is the key for hashing API keys. */
export async function acceptsSampleKey(store: Store, pepper: Buffer): Promise<boolean> {
  for (const key of sampleKeys) {
    const keyId = await store.get(keyOf('apiKeyDigest', apiKeyDigest(pepper, key)))
    const record = keyId === undefined ? undefined : await store.get(keyOf('apiKey', textOf(keyId)))
    if (record !== undefined && isLive(readApiKey(record))) return true
  }
  return false
}
