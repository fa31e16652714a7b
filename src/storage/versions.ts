/**
 * Versions. Every write to a part of the store replaces the version of that part in the same commit. A cache stores the
 * version under which it read, and an entry is valid while that version is unchanged.
 */

import { randomBytes } from 'node:crypto'
import { latin1Key } from './keys.ts'
import type { Entry, Key, Store } from './store.ts'

/** A new random version. Every write to the part must put it. */
export function newVersion(key: Key): Entry {
  return { key, value: randomBytes(12) }
}

/** The version as text. '' for a part that was never written; nothing may be cached under ''. */
export async function readVersion(store: Pick<Store, 'get'>, key: Key): Promise<string> {
  return versionText(await store.get(key))
}

/** The text of a stored version, one character per byte; '' for undefined. */
export function versionText(value: Uint8Array | undefined): string {
  return value === undefined ? '' : latin1Key(value)
}
