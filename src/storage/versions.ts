/**
 * Versions. A version is a value that every write to its part of the store replaces in the same commit: whoever
 * remembers something remembers the version that it was read under, and asks whether it is still the same.
 */

import { randomBytes } from 'node:crypto'
import { latin1Key } from './keys.ts'
import type { Entry, Key, Store } from './store.ts'

/** To be put among the entries of every write to the part. */
export function newVersion(key: Key): Entry {
  return { key, value: randomBytes(12) }
}

/** As text; '' for a part that was never written, of which nothing may be remembered. */
export async function readVersion(store: Pick<Store, 'get'>, key: Key): Promise<string> {
  return versionText(await store.get(key))
}

export function versionText(value: Uint8Array | undefined): string {
  return value === undefined ? '' : latin1Key(value)
}
