/**
 * Revoked tokens. Tokens are self-contained, so revoking one stores its id. authenticate.ts looks the id up for the
 * token and its children, until all of them have expired.
 */

import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../limits.ts'
import { readRevocation, revocationEntry } from '../storage/directory-records.ts'
import { directoryVersionKey, prefixOf, prefixRange } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

/** `exp`: the token's expiry in Unix seconds, if known; no child outlives it. */
interface Times {
  readonly exp: number | undefined
  readonly nowSeconds: number
}

/** Revokes a token and its children. Resolves once the revocation is durable and effective. */
export async function revokeToken(store: Store, jti: string, times: Times): Promise<void> {
  const { puts, ...write } = await revocationOfToken(store, jti, times)
  await store.commit({ ...write, puts: [...puts, newVersion(directoryVersionKey)] })
}

/** The write that revokes a token, and deletes some revocations that are no longer needed. */
export async function revocationOfToken(store: Store, jti: string, { exp, nowSeconds }: Times) {
  const until = exp ?? nowSeconds + tokenLifetimeMaxSeconds
  // Those of tokens that expired long ago, among the first 1,000 in the store.
  const { entries } = await store.range({ ...prefixRange(prefixOf('revocation')), limit: 1000 })
  const old = entries.filter(({ value }) => readRevocation(value) + revocationRetentionSeconds < nowSeconds)
  return {
    puts: [revocationEntry(jti, until)],
    deletes: old.map(({ key }) => key),
    fromReserve: 'revocation',
  } as const
}
