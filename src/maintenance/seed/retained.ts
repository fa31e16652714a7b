/**
 * Records that stay although their fixture is gone: a namespace or an organization in which something was made over
 * HTTP. From then on it is as if it had been made over HTTP itself (contract, 11.5).
 */

import { organizationUserId } from '../../model/names.ts'
import { indexKeysOf } from '../../storage/directory-records.ts'
import { everyKey } from '../../storage/every-entry.ts'
import { keyOf, latin1Key, ownedBy, prefixOf, prefixRange } from '../../storage/keys.ts'
import { parseKey } from '../../storage/record-kinds.ts'
import type { Key, Store } from '../../storage/store.ts'
import { madeOverHttpIn } from './desired.ts'

const heldBy = (organizationId: string) => prefixOf('heldApiKey', organizationUserId(organizationId))

/** Takes those that stay out of `going` (keys as `latin1Key` text), with their index. Returns names for the log. */
export async function retainInUse(store: Store, going: Set<string>): Promise<string[]> {
  const keys = [...going].map((name) => Buffer.from(name, 'latin1'))
  const retainedNames: string[] = []
  const stay = async (key: Key, name: string) => {
    const value = await store.get(key)
    if (value === undefined) return
    for (const one of [key, ...indexKeysOf({ key, value })]) going.delete(latin1Key(one))
    retainedNames.push(name)
  }
  /** Whether there is a key in the range that does not go. */
  const hasOther = async (prefix: Key, nameOf: (key: Key) => string) => {
    for await (const key of everyKey(store, prefix)) if (!going.has(nameOf(key))) return true
    return false
  }
  for (const key of keys) {
    const parsed = parseKey(key)
    if (parsed?.kind !== 'namespace') continue
    const { namespace } = parsed
    const made = await madeOverHttpIn(store, namespace, (name) => going.has(name))
    if (made !== undefined || (await hasOther(prefixOf('registryLink', namespace), latin1Key)))
      await stay(key, `namespace ${namespace}`)
  }
  // After the namespaces: one that stays needs its organization.
  for (const key of keys) {
    const parsed = parseKey(key)
    if (parsed?.kind !== 'organization') continue
    const { organizationId } = parsed
    const owned = ownedBy({ organizationId })
    const ownsOther = await hasOther(owned, (one) => latin1Key(keyOf('namespace', latin1Key(one).slice(owned.length))))
    const hasKeys = (await store.keys({ ...prefixRange(heldBy(organizationId)), limit: 1 })).keys.length > 0
    if (ownsOther || hasKeys || (await hasOther(prefixOf('member', organizationId), latin1Key)))
      await stay(keyOf('organization', organizationId), `organization ${organizationId}`)
  }
  return retainedNames
}
