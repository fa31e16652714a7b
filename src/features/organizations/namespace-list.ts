/** The namespaces that a list shows (door contract, 3.1). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { accessibleNamespaces, firstNames, namespacesOf } from '../../auth/namespace-access.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { fieldsIn, type PageNumber, readPageNumber } from '../../http/numbered-pages.ts'
import { readFlag, readQuery } from '../../http/query.ts'
import { namespacesPageMax } from '../../limits.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import type { Store } from '../../storage/store.ts'

export interface NamespaceQuery {
  readonly page: PageNumber
  readonly beginning: string
  readonly ownerId: string | undefined
  readonly hasServers: boolean | undefined
  readonly hasSkills: boolean | undefined
  readonly fields: ReadonlySet<string> | undefined
}

/** Which namespaces have servers. */
export interface RegisteredServers {
  /** Resolves when what was committed before the call is known. */
  refresh(): Promise<void>
  hasServers(namespace: string): boolean
}

const parameters = ['page', 'pageSize', 'q', 'ownerId', 'hasServers', 'hasSkills', 'fields']

/** Throws `invalid_request`. */
export function readNamespaceQuery(url: string): NamespaceQuery {
  const query = readQuery(url, parameters)
  return {
    page: readPageNumber(query, { sizeDefault: namespacesPageMax, sizeMax: namespacesPageMax }),
    beginning: query.get('q') ?? '',
    ownerId: query.get('ownerId'),
    hasServers: readFlag(query, 'hasServers'),
    hasSkills: readFlag(query, 'hasSkills'),
    fields: fieldsIn(query),
  }
}

/** The names that match, of those that the caller may access and its policy allows, in order. Throws 429. */
export async function matchingNamespaces(
  { store, catalogue }: { readonly store: Pick<Store, 'keys'>; readonly catalogue: RegisteredServers },
  context: RequestContext,
  { beginning, ownerId, hasServers, hasSkills }: NamespaceQuery,
): Promise<string[]> {
  // There are no skills here.
  if (hasSkills === true) return []
  const owned = ownerId === undefined ? undefined : await namespacesOf(store, context, ownerId)
  if (hasServers !== undefined) await catalogue.refresh()
  const isAllowed = namespaceFilter(context.caller.blocks)
  const isWanted = (name: string) =>
    isAllowed(name) &&
    name.startsWith(beginning) &&
    owned?.has(name) !== false &&
    (hasServers === undefined || catalogue.hasServers(name) === hasServers)
  return allowanceOf(context.request).run(firstNames(await accessibleNamespaces(store, context), isWanted))
}
