/** The owners of an organization, for code that brings records of it: fixtures and imports. */

import { readRole } from '../storage/directory-records.ts'
import { everyEntry } from '../storage/every-entry.ts'
import { prefixOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'

/** Whether the stored organization has owners, none of whom is among these. One without owners is nobody's. */
export async function belongsToOthers(
  store: Store,
  organizationId: string,
  owners: ReadonlySet<string>,
): Promise<boolean> {
  const prefix = prefixOf('member', organizationId)
  let hasOwner = false
  for await (const { key, value } of everyEntry(store, prefix)) {
    if (readRole(value) !== 'owner') continue
    if (owners.has(Buffer.from(key).toString('utf8', prefix.length))) return false
    hasOwner = true
  }
  return hasOwner
}
