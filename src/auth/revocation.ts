/**
 * Revoked tokens. A token is its own proof, so revoking one writes its id down; whoever presents it or a child
 * of it is asked for (`authenticate.ts`) until the last of them has expired by itself.
 */

import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../limits.ts'
import { prefixRange, registryVersionKey, revocations } from '../storage/keys.ts'
import { readRevocation, revocationEntry } from '../storage/registry-records.ts'
import type { Key, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

/** `exp`, Unix seconds, where it is known: no child outlives its parent. Resolves when durable, and in force. */
export async function revokeToken(
  store: Store,
  jti: string,
  { exp, nowSeconds }: { readonly exp: number | undefined; readonly nowSeconds: number },
): Promise<void> {
  const until = exp ?? nowSeconds + tokenLifetimeMaxSeconds
  await store.commit({
    puts: [revocationEntry(jti, until), newVersion(registryVersionKey)],
    deletes: await forgettable(store, nowSeconds),
    fromReserve: true,
  })
}

/** Some of the revocations of tokens that are long over. */
async function forgettable(store: Store, nowSeconds: number): Promise<Key[]> {
  const { entries } = await store.range({ ...prefixRange(revocations), limit: 1000 })
  return entries
    .filter(({ value }) => readRevocation(value) + revocationRetentionSeconds < nowSeconds)
    .map(({ key }) => key)
}
