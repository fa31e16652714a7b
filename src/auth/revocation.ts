/** Revoked tokens: the id is stored, and looked up for the token and its children until all have expired. */

import { revocationRetentionSeconds, tokenLifetimeMaxSeconds } from '../limits.ts'
import { readRevocation, revocationEntry } from '../storage/directory-records.ts'
import { everyEntry } from '../storage/every-entry.ts'
import { directoryVersionKey, prefixOf } from '../storage/keys.ts'
import type { Key, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

/** `exp`: the token's expiry in Unix seconds, if known; no child outlives it. */
interface Times {
  readonly exp: number | undefined
  readonly nowSeconds: number
}

/** Revokes a token and its children. Resolves once the revocation is durable and effective. */
export async function revokeToken(store: Store, jti: string, times: Times): Promise<void> {
  const { puts, ...write } = revocationOfToken(jti, times)
  await store.commit({ ...write, puts: [...puts, newVersion(directoryVersionKey)] })
}

/** The write that revokes a token. It depends on nothing that is stored. */
export function revocationOfToken(jti: string, { exp, nowSeconds }: Times) {
  const until = exp ?? nowSeconds + tokenLifetimeMaxSeconds
  return { checks: [], puts: [revocationEntry(jti, until)], fromReserve: 'revocation' } as const
}

/** Revocations that are deleted at a time. Past it: the rest in further writes. */
const revocationsPerWrite = 400

/** Deletes the revocations of tokens that expired long ago. */
export async function sweepRevocations(store: Store, nowSeconds: number): Promise<void> {
  const old: Key[] = []
  const forget = (least: number) =>
    old.length > least && store.commit({ deletes: old.splice(0), fromReserve: 'revocation' })
  for await (const { key, value } of everyEntry(store, prefixOf('revocation'))) {
    if (readRevocation(value) + revocationRetentionSeconds < nowSeconds) old.push(key)
    await forget(revocationsPerWrite)
  }
  await forget(0)
}
