/** Namespaces over HTTP: list, read, make, change, delete (contract, 10.1 to 10.4). */

import { auditedCaller, type Caller, canAccessNamespace, requireMayActFor } from '../../auth/authenticate.ts'
import { managedBy, noteTold, type RequestContext } from '../../auth/authorizer.ts'
import { accessibleNamespaces, firstNames, managesNamespace, namespacesOf } from '../../auth/namespace-access.ts'
import { answerWhileAllowed } from '../../auth/while-allowed.ts'
import { timestampOf } from '../../clock.ts'
import { conflict, forbidden, invalidRequest, namespaceMissing, notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { readOptionalBody, refuseBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { fieldsIn, pageOf, paginationOf, readPageNumber, withFields } from '../../http/numbered-pages.ts'
import { namesInPath } from '../../http/path.ts'
import { readFlag, readQuery, refuseQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { namespacesPageMax, namespacesPerOrganizationMax } from '../../limits.ts'
import { newNamespaceName } from '../../model/made-names.ts'
import {
  createdAtOf,
  type Namespace,
  NamespaceChange,
  type NamespaceDetail,
  type NamespaceMade,
  NamespaceWrite,
  namespaceSettings,
  ownerName,
} from '../../model/organization.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { validatorOf } from '../../schema/check.ts'
import { indexKeysOf, namespaceEntry, readNamespace, withIndex } from '../../storage/directory-records.ts'
import type { DirectoryChange } from '../../storage/directory-write.ts'
import { madeAfterEnd } from '../../storage/ended-namespaces.ts'
import { everyKey } from '../../storage/every-entry.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { foldedLike, keyOf, type Owner, ownedBy, prefixOf, prefixRange, serversIn } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { newVersion } from '../../storage/versions.ts'
import { within } from '../../within.ts'
import type { OrganizationDeps } from './organization-deps.ts'

/** Milliseconds that a deletion waits for the removal of its connections. Past it: the rest is removed afterwards. */
export const deletionAnswerMs = 10_000

/** Contract 10.2: characters of a namespace that is created over HTTP. Past it: 400. */
const madeNamespaceCharsMax = 39

const writeShape = validatorOf(NamespaceWrite)
const changeShape = validatorOf(NamespaceChange)

const toRead = { resource: 'namespaces', operation: 'read' } as const
const toWrite = { resource: 'namespaces', operation: 'write' } as const

export const namespaceHandlers = handlersOf({
  listNamespaces: answerWhileAllowed(namespacesSeen),
  getNamespace,
  createNamespace,
  putNamespace,
  changeNamespace,
  deleteNamespace,
})

const parameters = ['page', 'pageSize', 'q', 'ownerId', 'hasServers', 'hasSkills', 'fields']

/** The page of namespaces that the request asks for. Throws 403, 400, 429. */
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
  return { namespaces, pagination: paginationOf(page, names.length) }
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
      for await (const part of everyKey(store, prefixOf(kind, namespace))) deletes.push(part)
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

async function createNamespace(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { authorizer, store, writes, denials } = deps
  const { caller, change } = await writes.begin(request, (context) => {
    authorizer.requireList(context, toWrite)
    const block = context.caller.blocks.findIndex(({ namespaces }) => namespaces !== undefined)
    if (block < 0) return
    // A made-up name is none of those that the token may use.
    const refusal = { allowed: false, block, field: 'namespaces', visible: true } as const
    denials.recordPolicyDenial(request, context.caller, { ...toWrite, namespace: '', metadata: 'none' }, refusal)
    throw forbidden(refusal)
  }) // 401, 429, 403, 400
  await refuseBody(request, '; PUT /namespaces/{name} takes an owner') // 400
  const made = await change(async () => {
    const owner = defaultOwner(caller)
    const owned = await store.keys({ ...prefixRange(ownedBy(owner)), limit: 1 })
    if (owned.keys.length > 0)
      throw invalidRequest(
        `the ${ownerName(owner)} owns a namespace already (see GET /namespaces): for another one, use PUT /namespaces/{name}`,
      )
    return creation(deps, await freeName(store), owner, caller) // 429
  })
  return madeResponse(deps, made, caller)
}

async function putNamespace(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { authorizer, store, writes } = deps
  const {
    caller,
    allowed: name,
    change,
  } = await writes.begin(request, async (context) => {
    const [name = ''] = namesInPath(request.url)
    authorizer.requireAllowed(context, name, toWrite)
    const there = await context.directory.namespace(name)
    if (there !== undefined) await requireManagerIfAccessible(context, there)
    return name
  }) // 401, 429, 404, 403, 400
  const body = await readOptionalBody(request, writeShape) // 400
  const made = await change<Made>(async (context) => {
    const owner = await ownerOfNew(context, body) // 400, 403
    const stored = await store.get(keyOf('namespace', name))
    if (stored !== undefined) {
      const namespace = readNamespace(stored)
      await requireUnchanged(context, namespace, body) // 409, 403
      return { result: { name, createdAt: createdAtOf(namespace) } }
    }
    await requireFree(store, name) // 400, 409
    await requireRoom(store, context, owner, deps.namespacesPerUser) // 403
    return creation(deps, name, owner, context.caller) // 429
  })
  return madeResponse(deps, made, caller)
}

/** A namespace as it is answered. `owner`: of one that was made by this request. */
type Made = NamespaceMade & { readonly owner?: Owner }

async function freeName(store: Store): Promise<string> {
  for (;;) {
    const name = newNamespaceName()
    const found = await store.getMany([keyOf('namespace', name), keyOf('deletingNamespace', name)])
    if (found.every((one) => one === undefined)) return name
  }
}

/** Throws `rate_limited`. */
async function creation(
  { clock, store, newNamespaces }: OrganizationDeps,
  name: string,
  owner: Owner,
  caller: Caller,
): Promise<DirectoryChange<Made>> {
  if (!caller.operator) requireRate(newNamespaces.take(ownerName(owner)), 'Its owner makes namespaces too often')
  // The clock of another replica may be ahead.
  const made = await madeAfterEnd(store, { namespace: name, ...owner, createdAt: timestampOf(clock) })
  return { write: { puts: withIndex(namespaceEntry(made)) }, result: { name, createdAt: createdAtOf(made), owner } }
}

async function madeResponse({ audit }: OrganizationDeps, { name, createdAt, owner }: Made, caller: Caller) {
  if (owner !== undefined)
    await audit.recordDone('namespace.created', { ...auditedCaller(caller), namespace: name, owner: ownerName(owner) })
  const made: NamespaceMade = { name, createdAt }
  return new Response(JSON.stringify(made), { status: 201, headers: privateJson })
}

const namePattern = new RegExp(`^[a-z0-9][a-z0-9-]{1,${madeNamespaceCharsMax - 2}}[a-z0-9]$`)

/** The owner of a namespace that the caller makes without naming one. */
function defaultOwner({ userId, organizationId }: Caller): Owner {
  return organizationId === undefined ? { userId } : { organizationId }
}

/** A PUT of what is there changes nothing. Throws 409 for another's, 403 for one that the caller does not manage. */
async function requireUnchanged(
  context: RequestContext,
  namespace: Namespace,
  { organizationId, userId }: NamespaceWrite,
): Promise<void> {
  const name = namespace.namespace
  if (!(await canAccessNamespace(context.caller, namespace, context.directory))) throw taken(name)
  await requireManagerIfAccessible(context, namespace)
  const owner = ownerName(namespace)
  const isOther =
    (organizationId !== undefined && owner !== ownerName({ organizationId })) ||
    (userId !== undefined && owner !== ownerName({ userId }))
  if (isOther) throw conflict(`The namespace ${name} already belongs to ${owner}: its owner cannot be changed`)
}

/** Throws 403 for a namespace that the caller may access and does not manage. */
async function requireManagerIfAccessible({ caller, directory }: RequestContext, namespace: Namespace): Promise<void> {
  const isAccessible = await canAccessNamespace(caller, namespace, directory)
  if (!isAccessible || (await managesNamespace(caller, namespace, directory))) return
  throw new PlatformError('forbidden', `The namespace ${namespace.namespace} exists, and you may not change it`)
}

/** Throws 400 for two owners, and 403 for one that the caller may not name. */
async function ownerOfNew(context: RequestContext, { organizationId, userId }: NamespaceWrite) {
  const { caller } = context
  if (organizationId !== undefined && userId !== undefined)
    throw invalidRequest('userId: cannot be combined with organizationId; a namespace has one owner')
  if (organizationId !== undefined) {
    await requireMayActFor(organizationId, context)
    return { organizationId }
  }
  if (userId === undefined) return defaultOwner(caller)
  const isOwn = userId === caller.userId
  if (caller.organizationId !== undefined || !(isOwn || caller.operator))
    throw new PlatformError('forbidden', 'userId: only an operator may create a namespace for somebody else')
  return { userId }
}

/** Throws 400 for a name that cannot be, and 409 for one that is taken or still going. */
async function requireFree(store: Store, name: string): Promise<void> {
  if (!namePattern.test(name))
    throw invalidRequest(
      `name: must be 3 to ${madeNamespaceCharsMax} characters (a-z, 0-9 and "-"), beginning and ending with a letter or digit`,
    )
  if ((await store.get(keyOf('deletingNamespace', name))) !== undefined)
    throw conflict(`The namespace ${name} is being deleted: try again when its connections are gone`)
  const { keys } = await store.keys({ ...prefixRange(foldedLike(name)), limit: 1 })
  if (keys.length > 0) throw taken(name)
}

/** Throws 403 if the owner has all that it may: a user `perUser` (`--namespaces-per-user`). Operators have no bound. */
async function requireRoom(store: Store, { caller }: RequestContext, owner: Owner, perUser: number): Promise<void> {
  const isOrganization = 'organizationId' in owner
  const most = isOrganization ? namespacesPerOrganizationMax : perUser
  if (most === Number.POSITIVE_INFINITY || caller.operator) return
  const { keys } = await store.keys({ ...prefixRange(ownedBy(owner)), limit: most })
  if (keys.length < most) return
  const [who, flag] = isOrganization ? ['An organization', ''] : ['A user', ' (--namespaces-per-user)']
  throw new PlatformError('forbidden', `${who} may own at most ${most} namespaces here${flag}: delete one first`)
}

function taken(name: string): PlatformError {
  return conflict(`The name ${name} is taken: choose another name`)
}
