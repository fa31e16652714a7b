/** Which namespaces a caller reaches, and which it leads (door contract, 1.1). Policies are evaluated elsewhere. */

import { namespacesPerRead } from '../limits.ts'
import type { Namespace } from '../model/registry.ts'
import { everyKey } from '../storage/every-entry.ts'
import { idOfKey, membershipsOf, namespaces, ownedBy } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { type Caller, isOrganizationAdmin } from './authenticate.ts'
import type { RegistrySnapshot } from './registry.ts'

/** Whether a caller that reaches the namespace also leads it: then it may change the namespace and its servers. */
export async function leadsNamespace(
  caller: Caller,
  namespace: Namespace,
  registry: RegistrySnapshot,
): Promise<boolean> {
  // A token for an organization, and an organization's key, act as its admin.
  if (caller.operator || caller.organizationId !== undefined || 'userId' in namespace) return true
  return isOrganizationAdmin(caller, namespace.organizationId, registry)
}

/** The names of all namespaces that the caller reaches, in order. An operator reaches all there are. */
export async function reachedNamespaces(store: Pick<Store, 'keys'>, caller: Caller): Promise<string[]> {
  const { operator, userId, organizationId } = caller
  if (organizationId !== undefined) return namesUnder(store, ownedBy({ organizationId }))
  if (operator) return namesUnder(store, namespaces)
  const names = await namesUnder(store, ownedBy({ userId }))
  for (const organization of await organizationsOf(store, userId)) {
    for (const name of await namesUnder(store, ownedBy({ organizationId: organization }))) names.push(name)
  }
  return names.sort(inByteOrder)
}

/** The names of all namespaces of a user or an organization: an id does not tell which. */
export async function namespacesOf(store: Pick<Store, 'keys'>, id: string): Promise<Set<string>> {
  const lists = [ownedBy({ userId: id }), ownedBy({ organizationId: id })].map((prefix) => namesUnder(store, prefix))
  return new Set((await Promise.all(lists)).flat())
}

/** Whether the caller reaches a namespace of a registered server. Made once, and asked for many. */
export async function reachOf(store: Pick<Store, 'keys'>, caller: Caller): Promise<(namespace: string) => boolean> {
  if (caller.operator && caller.organizationId === undefined) return () => true
  const reached = new Set(await reachedNamespaces(store, caller))
  return (namespace) => reached.has(namespace)
}

/** The ids of the organizations that a user is a member of, in order. */
export function organizationsOf(store: Pick<Store, 'keys'>, userId: string): Promise<string[]> {
  return namesUnder(store, membershipsOf(userId))
}

/** The last parts of the keys under a prefix. */
export async function namesUnder(store: Pick<Store, 'keys'>, prefix: Uint8Array): Promise<string[]> {
  const names: string[] = []
  for await (const key of everyKey(store, prefix, namespacesPerRead)) names.push(idOfKey(prefix, key))
  return names
}

/** The order of ASCII names by their bytes, which `localeCompare` does not keep. */
export function inByteOrder(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
