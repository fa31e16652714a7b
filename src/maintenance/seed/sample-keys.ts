/** API keys that are publicly known: those of the sample fixtures, and of an example in the documentation. */

import keys from '../../../fixtures/keys.json' with { type: 'json' }
import { apiKeyDigest, findApiKey } from '../../auth/api-key.ts'
import { isLive } from '../../auth/authenticate.ts'
import type { Store } from '../../storage/store.ts'

const sampleKeys: readonly string[] = keys.apiKeys.map(({ key }) => key)

/** The operator key in the example of docs/company.md. */
const exampleKey = 'an-operator-key-of-at-least-32-characters'

export function hasSampleKey(apiKeys: readonly { readonly key: string }[]): boolean {
  return apiKeys.some(({ key }) => sampleKeys.includes(key))
}

/** True if the store accepts a sample key. `pepper` is the key for hashing API keys. */
export const acceptsSampleKey = (store: Store, pepper: Buffer) => acceptsOneOf(sampleKeys, store, pepper)

/** True if the store accepts a sample key, or that of the example. */
export const acceptsKnownKey = (store: Store, pepper: Buffer) =>
  acceptsOneOf([...sampleKeys, exampleKey], store, pepper)

async function acceptsOneOf(known: readonly string[], store: Store, pepper: Buffer): Promise<boolean> {
  for (const key of known) {
    const found = await findApiKey(store, apiKeyDigest(pepper, key))
    if (found !== undefined && isLive(found)) return true
  }
  return false
}
