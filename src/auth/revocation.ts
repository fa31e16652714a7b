/**
 * Revoked tokens. Tokens are self-contained, so revoking one stores its id. authenticate.ts looks the id up for the
 * token and its children, until all of them have expired.
 */

import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../limits.ts'
import { readRevocation, revocationEntry } from '../storage/directory-records.ts'
import { directoryVersionKey, prefixOf, prefixRange } from '../storage/keys.ts'
import type { Key, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

/**
 * Revokes a token and its children. `exp`: the token's expiry in Unix seconds, if known; no child outlives it. Resolves
 * once the revocation is durable and effective. Also deletes some revocations that are no longer needed.
 */
export async function revokeToken(
  store: Store,
  jti: string,
  { exp, nowSeconds }: { readonly exp: number | undefined; readonly nowSeconds: number },
): Promise<void> {
  const until = exp ?? nowSeconds + tokenLifetimeMaxSeconds
  await store.commit({
    puts: [revocationEntry(jti, until), newVersion(directoryVersionKey)],
    deletes: await forgettable(store, nowSeconds),
    fromReserve: 'revocation',
  })
}

/**
 * Revocations of tokens that expired more than `revocationRetentionSeconds` ago, among the first 1,000 in the store.
 */
async function forgettable(store: Store, nowSeconds: number): Promise<Key[]> {
  const { entries } = await store.range({ ...prefixRange(prefixOf('revocation')), limit: 1000 })
  return entries
    .filter(({ value }) => readRevocation(value) + revocationRetentionSeconds < nowSeconds)
    .map(({ key }) => key)
}
