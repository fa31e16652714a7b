/** The namespaces that a list shows (door contract, 3.1). */

import type { RequestContext } from '../../auth/authorize.ts'
import { namesUnder, reachedNamespaces } from '../../auth/reach.ts'
import { type PageNumber, readFlag, readPageNumber } from '../../http/numbered-pages.ts'
import { readQuery, unknownParameter } from '../../http/query.ts'
import { namespacesPageMax } from '../../limits.ts'
import { namespaceOf } from '../../model/names.ts'
import { allowsNamespace } from '../../policy/decide.ts'
import { ownedBy, servers } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'

export interface NamespaceQuery {
  readonly page: PageNumber
  readonly beginning: string
  readonly ownerId: string | undefined
  readonly hasServers: boolean | undefined
  readonly hasSkills: boolean | undefined
  readonly fields: string | undefined
}

const parameters = ['page', 'pageSize', 'q', 'ownerId', 'hasServers', 'hasSkills', 'fields']

/** Throws `invalid_request`. */
export function readNamespaceQuery(url: string): NamespaceQuery {
  const query = readQuery(url)
  for (const name of query.keys()) {
    if (!parameters.includes(name)) throw unknownParameter(name, parameters.join(', '))
  }
  return {
    page: readPageNumber(query, { sizeDefault: namespacesPageMax, sizeMax: namespacesPageMax }),
    beginning: query.get('q') ?? '',
    ownerId: query.get('ownerId'),
    hasServers: readFlag(query, 'hasServers'),
    hasSkills: readFlag(query, 'hasSkills'),
    fields: query.get('fields'),
  }
}

/** The names that match, of those that the caller reaches and its policy allows, in order. */
export async function matchingNamespaces(
  store: Pick<Store, 'keys'>,
  { caller }: RequestContext,
  { beginning, ownerId, hasServers, hasSkills }: NamespaceQuery,
): Promise<string[]> {
  // There are no skills here.
  if (hasSkills === true) return []
  const owned = ownerId === undefined ? undefined : await namesOwnedBy(store, ownerId)
  const withServers =
    hasServers === undefined ? undefined : new Set((await namesUnder(store, servers)).map(namespaceOf))
  return (await reachedNamespaces(store, caller)).filter(
    (name) =>
      allowsNamespace(caller.blocks, name) &&
      name.startsWith(beginning) &&
      owned?.has(name) !== false &&
      (withServers === undefined || withServers.has(name) === hasServers),
  )
}

/** Of a user or an organization: an id does not tell which. */
async function namesOwnedBy(store: Pick<Store, 'keys'>, id: string): Promise<Set<string>> {
  const lists = [ownedBy({ userId: id }), ownedBy({ organizationId: id })].map((prefix) => namesUnder(store, prefix))
  return new Set((await Promise.all(lists)).flat())
}
