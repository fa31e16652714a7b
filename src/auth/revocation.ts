/**
 * Revoked tokens. A token is its own proof, so revoking one writes its id down; whoever presents it or a child
 * of it is asked for (`authenticate.ts`) until the last of them has expired by itself.
 */

import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../limits.ts'
import { latin1Key, prefixRange, registryVersionKey, revocationKey, revocations } from '../storage/keys.ts'
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
    puts: [{ key: revocationKey(jti), value: Buffer.from(String(until)) }, newVersion(registryVersionKey)],
    deletes: await forgettable(store, nowSeconds),
    fromReserve: true,
  })
}

/** Until when it counts, Unix seconds; 0 for none. */
export function readRevocation(stored: Uint8Array | undefined): number {
  return stored === undefined ? 0 : Number(latin1Key(stored))
}

/** Some of the revocations of tokens that are long over. */
async function forgettable(store: Store, nowSeconds: number): Promise<Key[]> {
  const { entries } = await store.range({ ...prefixRange(revocations), limit: 1000 })
  return entries
    .filter(({ value }) => readRevocation(value) + revocationRetentionSeconds < nowSeconds)
    .map(({ key }) => key)
}
