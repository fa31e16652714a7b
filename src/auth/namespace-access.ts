/** Which namespaces a caller may access, and which it manages (contract, 2.6). Policies are evaluated elsewhere. */

import { type Allowance, allowanceOf } from '../fairness/allowance.ts'
import type { Namespace } from '../model/organization.ts'
import { everyKey } from '../storage/every-entry.ts'
import { idOfKey, ownedBy, prefixOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { type Authenticated, type Caller, isOrganizationAdmin } from './authenticate.ts'
import type { DirectorySnapshot } from './directory.ts'

type Asking = Authenticated & { readonly request: Request }

/** Whether a caller that may access the namespace also manages it, that is, may change it and its servers. */
export async function managesNamespace(caller: Caller, namespace: Namespace, directory: DirectorySnapshot) {
  // A token for an organization, and an organization's key, act as its admin.
  if (caller.operator || caller.organizationId !== undefined || 'userId' in namespace) return true
  return isOrganizationAdmin(caller, namespace.organizationId, directory)
}

/**
 * The names of all namespaces that the caller may access, in order. An operator may access all there are. They are read
 * once for a version of the directory. Rejects as `Slices.next`.
 */
export async function accessibleNamespaces(store: Pick<Store, 'keys'>, { caller, directory, request }: Asking) {
  const { operator, userId, organizationId } = caller
  const allowance = allowanceOf(request)
  if (organizationId !== undefined)
    return directory.names(`organization ${organizationId}`, () =>
      namesUnder(store, ownedBy({ organizationId }), allowance),
    )
  if (operator) return directory.names('all', () => namesUnder(store, prefixOf('namespace'), allowance))
  return directory.names(`user ${userId}`, async () => {
    const names = await namesUnder(store, ownedBy({ userId }), allowance)
    for (const organization of await organizationsOf(store, userId)) {
      // Each has a thousand names, and a user may be in dozens.
      while (allowance.slices().isOver) await allowance.slices().next()
      const own = await namesUnder(store, ownedBy({ organizationId: organization }), allowance)
      for (const name of own) names.push(name)
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
export function namespacesOf(store: Pick<Store, 'keys'>, { directory }: Asking, id: string) {
  return directory.names(`owner ${id}`, async () => [
    ...(await namesUnder(store, ownedBy({ userId: id }))),
    ...(await namesUnder(store, ownedBy({ organizationId: id }))),
  ])
}

/** Resolves with a function that says whether the caller may access a namespace: make one per request. */
export async function accessOf(store: Pick<Store, 'keys'>, asking: Asking) {
  if (asking.caller.operator && asking.caller.organizationId === undefined) return () => true
  const accessible = await accessibleNamespaces(store, asking)
  return (namespace: string) => accessible.has(namespace)
}

/** The ids of the organizations that a user is a member of, in order. */
export function organizationsOf(store: Pick<Store, 'keys'>, userId: string): Promise<string[]> {
  return namesUnder(store, prefixOf('membership', userId))
}

/** A name takes as long as so many bytes of a large record: the time is that of the garbage it leaves. */
const nameReadBytes = 500

/** The last parts of the keys under a prefix, in the slices and the time of a request. */
export async function namesUnder(
  store: Pick<Store, 'keys'>,
  prefix: Uint8Array,
  allowance?: Allowance,
): Promise<string[]> {
  const names: string[] = []
  const slices = allowance?.slices()
  for await (const key of everyKey(store, prefix, slices)) names.push(idOfKey(prefix, key))
  allowance?.spendRead(nameReadBytes * names.length)
  return names
}
