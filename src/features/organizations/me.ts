/** `GET /me`: who the caller is, and what its credential may access and do (contract, 2.7). */

import { namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import {
  accessibleNamespaces,
  firstNames,
  managesNamespace,
  namespacesOf,
  organizationsOf,
} from '../../auth/namespace-access.ts'
import { answerWhileAllowed } from '../../auth/while-allowed.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import type { Me, Role } from '../../model/organization.ts'
import { type Access, decide, namespaceFilter } from '../../policy/decide.ts'
import type { Store } from '../../storage/store.ts'
import { version } from '../../version.ts'
import type { OrganizationDeps } from './organization-deps.ts'

/** Contract 2.7: namespaces that `/me` lists. Past it: `more` is true. */
const meNamespacesMax = 100

export const meHandlers = handlersOf({ getMe: answerWhileAllowed(meOf) })

async function meOf({ store, issuer, consoleSessions }: OrganizationDeps, context: RequestContext): Promise<Me> {
  const { caller, directory, request } = context
  refuseQuery(request.url) // 400
  // One more than is shown tells that there are more.
  const all = await accessibleNamespaces(store, context)
  const names = all.size <= meNamespacesMax ? all : ownFirst(await namespacesOf(store, context, caller.userId), all)
  const work = firstNames(names, namespaceFilter(caller.blocks), meNamespacesMax + 1)
  const accessible = await allowanceOf(request).run(work) // 429
  const { token } = caller
  return {
    userId: caller.userId,
    operator: caller.operator,
    organizationId: caller.organizationId ?? null,
    key: { id: caller.keyId, name: (await directory.apiKey(caller.keyId))?.name ?? null },
    token: token === undefined ? null : { jti: token.jti, expiresAt: timeOf(token.exp), policy: token.policy },
    organizations: await organizationsWithRoles(store, context),
    namespaces: await described(context, accessible.slice(0, meNamespacesMax)),
    more: accessible.length > meNamespacesMax,
    baseUrl: issuer,
    console: consoleSessions !== undefined,
    version,
  }
}

/** Of a caller that acts for one organization, that one. */
async function organizationsWithRoles(store: Store, { caller, directory }: RequestContext) {
  const only = caller.organizationId
  const ids = only === undefined ? await organizationsOf(store, caller.userId) : [only]
  const roles = await Promise.all(ids.map((organizationId) => directory.role(organizationId, caller.userId)))
  // A caller that acts for an organization without being its member acts as its admin.
  const otherwise: Role = only === undefined ? 'member' : 'admin'
  return ids.map((organizationId, index) => ({ organizationId, role: roles[index] ?? otherwise }))
}

/** Nobody's own namespaces are lost among those of an organization that has made them a member. */
function* ownFirst(own: ReadonlySet<string>, accessible: ReadonlySet<string>): Generator<string> {
  for (const name of own) if (accessible.has(name)) yield name
  for (const name of accessible) if (!own.has(name)) yield name
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}

async function described(context: RequestContext, names: readonly string[]): Promise<Me['namespaces']> {
  const { caller, directory } = context
  const described: Me['namespaces'] = []
  for (const name of names) {
    const namespace = await namespaceOf(context, name)
    // Deleted meanwhile.
    if (namespace === undefined) continue
    const leads = await managesNamespace(caller, namespace, directory)
    const may = operationsOf(name, leads)
      .filter((access) => decide(caller.blocks, access).allowed)
      .map(({ resource, operation }) => `${resource}:${operation}`)
    described.push({ name, leads, may })
  }
  return described
}

/** The operations that a caller may perform in a namespace. `leads`: as one of its managers. */
function operationsOf(namespace: string, leads: boolean): Access[] {
  const connections = (['read', 'write', 'execute'] as const).map(
    (operation): Access => ({ namespace, resource: 'connections', operation, metadata: 'narrowed' }),
  )
  const others = (['servers', 'namespaces'] as const).flatMap((resource) =>
    (leads ? (['read', 'write'] as const) : (['read'] as const)).map(
      (operation): Access => ({ namespace, resource, operation, metadata: 'none' }),
    ),
  )
  return [...connections, ...others]
}
