/**
 * Versions. Every write to a part of the store replaces the version of that part in the same commit. A cache stores the
 * version under which it read, and an entry is valid while that version is unchanged.
 */

import { randomBytes } from 'node:crypto'
import { latin1Key } from './keys.ts'
import type { Check, Entry, Key, Store } from './store.ts'

/** A new random version. Every write to the part must put it. */
export function newVersion(key: Key): Entry {
  return { key, value: randomBytes(12) }
}

/** A check that the key still holds its current value. */
export async function checkOf(store: Pick<Store, 'get'>, key: Key): Promise<Check> {
  return { key, value: (await store.get(key)) ?? null }
}

/** The version as text. '' for a part that was never written; nothing may be cached under ''. */
export async function readVersion(store: Pick<Store, 'get'>, key: Key): Promise<string> {
  return versionText(await store.get(key))
}

/** The text of a stored version, one character per byte; '' for undefined. */
export function versionText(value: Uint8Array | undefined): string {
  return value === undefined ? '' : latin1Key(value)
}
