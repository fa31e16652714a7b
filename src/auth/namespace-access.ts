/**
 * Which namespaces a caller may access, and which it manages (contract, 2.6). Policies are evaluated elsewhere.
 */

import { namespacesPerRead } from '../limits.ts'
import type { Namespace } from '../model/organization.ts'
import { everyKey } from '../storage/every-entry.ts'
import { idOfKey, ownedBy, prefixOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { type Authenticated, type Caller, isOrganizationAdmin } from './authenticate.ts'
import type { DirectorySnapshot } from './directory.ts'

/** Whether a caller that may access the namespace also manages it, that is, may change it and its servers. */
export async function managesNamespace(caller: Caller, namespace: Namespace, directory: DirectorySnapshot) {
  // A token for an organization, and an organization's key, act as its admin.
  if (caller.operator || caller.organizationId !== undefined || 'userId' in namespace) return true
  return isOrganizationAdmin(caller, namespace.organizationId, directory)
}

/**
 * The names of all namespaces that the caller may access, in order. An operator may access all there are. They are read
 * once for a version of the directory.
 */
export async function accessibleNamespaces(store: Pick<Store, 'keys'>, asking: Authenticated) {
  const { operator, userId, organizationId } = asking.caller
  if (organizationId !== undefined)
    return namesKept(asking, `organization ${organizationId}`, () => namesUnder(store, ownedBy({ organizationId })))
  if (operator) return namesKept(asking, 'all', () => namesUnder(store, prefixOf('namespace')))
  return namesKept(asking, `user ${userId}`, async () => {
    const names = await namesUnder(store, ownedBy({ userId }))
    for (const organization of await organizationsOf(store, userId)) {
      for (const name of await namesUnder(store, ownedBy({ organizationId: organization }))) names.push(name)
    }
    // By code units, which is the order of the bytes of ASCII names.
    return names.sort()
  })
}

/** Looking at a thousand names takes less than half a millisecond, in the unit of `sliceCost`. */
const namesPerStep = 1000
const namesStepCost = 10_000

/** The first `most` names that are wanted, as work for turns: an operator may access a million. */
export function* firstNames(
  names: Iterable<string>,
  isWanted: (name: string) => boolean,
  most = Number.POSITIVE_INFINITY,
): Generator<number, string[]> {
  const found: string[] = []
  let seen = 0
  for (const name of names) {
    if (found.length >= most) break
    if (seen % namesPerStep === 0) yield namesStepCost
    seen += 1
    if (isWanted(name)) found.push(name)
  }
  return found
}

/** The names of all namespaces of a user or an organization: an id does not tell which. */
export function namespacesOf(store: Pick<Store, 'keys'>, asking: Authenticated, id: string) {
  return namesKept(asking, `owner ${id}`, async () => [
    ...(await namesUnder(store, ownedBy({ userId: id }))),
    ...(await namesUnder(store, ownedBy({ organizationId: id }))),
  ])
}

/**
 * Whether the caller may access a namespace of a registered server. Build it once per request and call it for each
 * namespace.
 */
export async function accessOf(store: Pick<Store, 'keys'>, asking: Authenticated) {
  if (asking.caller.operator && asking.caller.organizationId === undefined) return () => true
  const accessible = await accessibleNamespaces(store, asking)
  return (namespace: string) => accessible.has(namespace)
}

async function namesKept({ directory }: Authenticated, what: string, read: () => Promise<readonly string[]>) {
  const kept = directory.keptNames(what)
  if (kept !== undefined) return kept
  const names: ReadonlySet<string> = new Set(await read())
  // Absence is not kept: invented owners would take the place of others.
  if (names.size > 0) directory.keepNames(what, names)
  return names
}

/** The ids of the organizations that a user is a member of, in order. */
export function organizationsOf(store: Pick<Store, 'keys'>, userId: string): Promise<string[]> {
  return namesUnder(store, prefixOf('membership', userId))
}

/** The last parts of the keys under a prefix. */
export async function namesUnder(store: Pick<Store, 'keys'>, prefix: Uint8Array): Promise<string[]> {
  const names: string[] = []
  for await (const key of everyKey(store, prefix, namespacesPerRead)) names.push(idOfKey(prefix, key))
  return names
}
