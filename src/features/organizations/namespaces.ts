/** Namespaces over HTTP: list, read, change, delete (contract, 10.1 and 10.4). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { managedBy, noteTold, type RequestContext } from '../../auth/authorizer.ts'
import { accessibleNamespaces, firstNames, namespacesOf } from '../../auth/namespace-access.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { conflict, namespaceMissing, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { fieldsIn, pageOf, paginationOf, readPageNumber, withFields } from '../../http/numbered-pages.ts'
import { namesInPath } from '../../http/path.ts'
import { readFlag, readQuery, refuseQuery } from '../../http/query.ts'
import { privateJson, wholeResponse } from '../../http/respond.ts'
import { namespacesPageMax } from '../../limits.ts'
import {
  createdAtOf,
  type Namespace,
  NamespaceChange,
  type NamespaceDetail,
  namespaceSettings,
} from '../../model/organization.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { validatorOf } from '../../schema/check.ts'
import { indexKeysOf, namespaceEntry, withIndex } from '../../storage/directory-records.ts'
import { everyKey } from '../../storage/every-entry.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, prefixOf, prefixRange, serversIn } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { newVersion } from '../../storage/versions.ts'
import { within } from '../../within.ts'
import type { OrganizationDeps } from './organization-deps.ts'
import { viewsMax } from './views.ts'

/**
 * Milliseconds that the deletion of a namespace waits for its connections to be removed. Past it: it is answered, and
 * the rest is removed afterwards.
 */
export const deletionAnswerMs = 10_000

const changeShape = validatorOf(NamespaceChange)

const toRead = { resource: 'namespaces', operation: 'read' } as const

export const namespaceHandlers = handlersOf({ listNamespaces, getNamespace, changeNamespace, deleteNamespace })

const parameters = ['page', 'pageSize', 'q', 'ownerId', 'hasServers', 'hasSkills', 'fields']

async function listNamespaces(deps: OrganizationDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  return wholeResponse(request, await whileAllowed(deps, context, (now) => namespacesSeen(deps, now))) // 401
}

/** The page of namespaces that the request asks for, as JSON. Throws 403, 400, 429. */
async function namespacesSeen({ authorizer, store, catalogue }: OrganizationDeps, context: RequestContext) {
  const { request } = context
  authorizer.requireList(context, toRead) // 403
  const query = readQuery(request.url, parameters) // 400
  const page = readPageNumber(query, { sizeDefault: namespacesPageMax, sizeMax: namespacesPageMax }) // 400
  const [hasServers, hasSkills] = [readFlag(query, 'hasServers'), readFlag(query, 'hasSkills')] // 400
  const [beginning, ownerId, fields] = [query.get('q') ?? '', query.get('ownerId'), fieldsIn(query)]
  const owned = ownerId === undefined ? undefined : await namespacesOf(store, context, ownerId)
  if (hasServers !== undefined) await catalogue.refresh()
  const isAllowed = namespaceFilter(context.caller.blocks)
  const isWanted = (name: string) =>
    // There are no skills here.
    hasSkills !== true &&
    isAllowed(name) &&
    name.startsWith(beginning) &&
    owned?.has(name) !== false &&
    (hasServers === undefined || catalogue.hasServers(name) === hasServers)
  const work = firstNames(await accessibleNamespaces(store, context), isWanted)
  const names = await allowanceOf(request).run(work) // 429
  const shown = pageOf(names, page)
  for (const name of shown) noteTold(context, name)
  const namespaces = shown.map((name) => withFields({ name }, fields))
  return JSON.stringify({ namespaces, pagination: paginationOf(page, names.length) })
}

async function getNamespace({ authorizer }: OrganizationDeps, request: Request): Promise<Response> {
  const context = await authorizer.authenticate(request) // 401, 429
  const [name] = namesInPath(request.url) // 404
  const namespace = await authorizer.requireManager(context, name, toRead) // 404, 403
  refuseQuery(request.url) // 400
  return detailResponse(namespace)
}

async function changeNamespace(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps)) // 401, 429, 404, 403, 400
  const wanted = await readOptionalBody(request, changeShape) // 400
  const { namespace, isChanged } = await change(async (_, namespace) => {
    if (namespaceSettings.every((name) => wanted[name] === undefined || (namespace[name] ?? null) === wanted[name]))
      return { result: { namespace, isChanged: false } }
    await refuseFixture(store, keyOf('namespace', namespace.namespace)) // 409
    const changed: Namespace = { ...namespace, ...wanted }
    const write = { puts: withIndex(namespaceEntry(changed)) }
    return { write, result: { namespace: changed, isChanged: true } }
  })
  if (isChanged)
    await audit.recordDone('namespace.changed', { ...auditedCaller(caller), namespace: namespace.namespace })
  return detailResponse(namespace)
}

async function deleteNamespace(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const { caller, change } = await writes.begin(request, managedBy(deps), 'removal') // 401, 429, 404, 403, 400
  const deleted = await change(async (_, { namespace }) => {
    const key = keyOf('namespace', namespace)
    await refuseFixture(store, key) // 409
    const value = await store.get(key)
    if (value === undefined) throw notFound(namespaceMissing)
    if (await hasServers(store, namespace)) throw conflict(`The namespace ${namespace} has servers: delete them first`)
    const deletes = [key, ...indexKeysOf({ key, value })]
    for (const kind of ['view', 'registryLink', 'publishedEntry'] as const)
      for await (const part of everyKey(store, prefixOf(kind, namespace), viewsMax)) deletes.push(part)
    // Random: a deletion under way must not take a later one for itself.
    const mark = newVersion(keyOf('deletingNamespace', namespace))
    return { write: { deletes, puts: [mark], fromReserve: 'deletion' }, result: namespace }
  })
  try {
    await audit.recordDone('namespace.deleted', { ...auditedCaller(caller), namespace: deleted })
  } finally {
    // Nobody can access them any more; the mark says that they are going, to this process and to the next. A removal
    // that fails is continued within the hour.
    const removed = deps.deletions.remove(deleted, allowanceOf(request).holder).catch(() => {})
    await within(deletionAnswerMs, removed, () => {})
  }
  return new Response(JSON.stringify({ success: true, name: deleted }), { headers: privateJson })
}

async function hasServers(store: Store, namespace: string): Promise<boolean> {
  if ((await store.get(keyOf('server', namespace))) !== undefined) return true
  return (await store.keys({ ...prefixRange(serversIn(namespace)), limit: 1 })).keys.length > 0
}

function detailResponse(namespace: Namespace): Response {
  const { namespace: name, pins = 'warn', registry = 'off' } = namespace
  const { title = null, description = null, instructions = null } = namespace
  const own = { pins, registry, title, description, instructions }
  const detail: NamespaceDetail = { name, createdAt: createdAtOf(namespace), ...own }
  return new Response(JSON.stringify(detail), { headers: privateJson })
}
