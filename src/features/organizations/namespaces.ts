/** Namespaces over HTTP: list, read, change, delete (door contract, 3.1 and 3.4). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { conflict, namespaceMissing, notFound } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import type { Handlers } from '../../http/handler.ts'
import { pageOf, paginationOf, withFields } from '../../http/numbered-pages.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { createdAtOf, type Namespace, NamespaceChange, type NamespaceDetail } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { removeDeleted } from '../../storage/deleted-namespaces.ts'
import { indexKeysOf, namespaceEntry, withIndex } from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, prefixRange, serversIn } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { newVersion } from '../../storage/versions.ts'
import { matchingNamespaces, type RegisteredServers, readNamespaceQuery } from './namespace-list.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const changeShape = validatorOf(NamespaceChange)

const toRead = { resource: 'namespaces', operation: 'read' } as const
const toWrite = { resource: 'namespaces', operation: 'write' } as const

type NamespaceHandlers = Pick<Handlers, 'listNamespaces' | 'getNamespace' | 'changeNamespace' | 'deleteNamespace'>

export interface NamespaceDeps extends OrganizationDeps {
  readonly catalogue: RegisteredServers
}

export function namespaceHandlers(deps: NamespaceDeps): NamespaceHandlers {
  return {
    listNamespaces: (request) => listNamespaces(deps, request),
    getNamespace: (request) => getNamespace(deps, request),
    changeNamespace: (request) => changeNamespace(deps, request),
    deleteNamespace: (request) => deleteNamespace(deps, request),
  }
}

async function listNamespaces(deps: NamespaceDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  authorizer.requireList(context, toRead) // 403
  const query = readNamespaceQuery(request.url) // 400
  const names = await matchingNamespaces(deps, context, query)
  const namespaces = pageOf(names, query.page).map((name) => withFields({ name }, query.fields))
  const body = JSON.stringify({ namespaces, pagination: paginationOf(query.page, names.length) })
  return new Response(body, { headers: privateJson })
}

async function getNamespace(deps: NamespaceDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const [name] = namesInPath(request.url) // 404
  const namespace = await authorizer.requireManager(context, name, toRead, namespaceMissing) // 404, 403
  refuseQuery(request.url) // 400
  return detailResponse(namespace)
}

async function changeNamespace(deps: NamespaceDeps, request: Request): Promise<Response> {
  const { authorizer, store, audit, writes } = deps
  const first = await writes.authenticate(request) // 401, 429
  const [name] = namesInPath(request.url) // 404
  await authorizer.requireManager(first, name, toWrite, namespaceMissing) // 404, 403
  refuseQuery(request.url) // 400
  const wanted = await readOptionalBody(request, changeShape) // 400
  const { namespace, isChanged } = await writes.change(request, async (context) => {
    const namespace = await authorizer.requireManager(context, name, toWrite, namespaceMissing)
    if (namespace.pins === wanted.pins) return { result: { namespace, isChanged: false } }
    await refuseFixture(store, keyOf('namespace', namespace.namespace)) // 409
    const changed: Namespace = { ...namespace, ...wanted }
    const write = { puts: withIndex(namespaceEntry(changed)) }
    return { write, result: { namespace: changed, isChanged: true } }
  })
  if (isChanged)
    await audit.recordDone('namespace.changed', { ...auditedCaller(first.caller), namespace: namespace.namespace })
  return detailResponse(namespace)
}

async function deleteNamespace(deps: NamespaceDeps, request: Request): Promise<Response> {
  const { authorizer, store, audit, writes } = deps
  const first = await writes.authenticate(request) // 401, 429
  const [name] = namesInPath(request.url) // 404
  await authorizer.requireManager(first, name, toWrite, namespaceMissing) // 404, 403
  refuseQuery(request.url) // 400
  const deleted = await writes.change(
    request,
    async (context) => {
      // 404, 403
      const { namespace } = await authorizer.requireManager(context, name, toWrite, namespaceMissing)
      const key = keyOf('namespace', namespace)
      await refuseFixture(store, key) // 409
      const value = await store.get(key)
      if (value === undefined) throw notFound(namespaceMissing)
      if (await hasServers(store, namespace))
        throw conflict(`The namespace ${namespace} has servers: delete them first`) // 409
      const deletes = [key, ...indexKeysOf({ key, value })]
      // Random: a deletion under way must not take a later one for itself.
      const mark = newVersion(keyOf('deletingNamespace', namespace))
      return { write: { deletes, puts: [mark], fromReserve: 'deletion' }, result: namespace }
    },
    'removal',
  )
  try {
    await audit.recordDone('namespace.deleted', { ...auditedCaller(first.caller), namespace: deleted })
  } finally {
    // Nobody can access them any more; the mark says that they are going, to this process and to the next.
    await removeDeleted(store, deleted)
  }
  return new Response(JSON.stringify({ success: true, name: deleted }), { headers: privateJson })
}

async function hasServers(store: Pick<Store, 'get' | 'keys'>, namespace: string): Promise<boolean> {
  if ((await store.get(keyOf('server', namespace))) !== undefined) return true
  return (await store.keys({ ...prefixRange(serversIn(namespace)), limit: 1 })).keys.length > 0
}

function detailResponse(namespace: Namespace): Response {
  const { namespace: name, pins = 'warn' } = namespace
  const detail: NamespaceDetail = { name, createdAt: createdAtOf(namespace), pins }
  return new Response(JSON.stringify(detail), { headers: privateJson })
}
