/** Servers over HTTP: make or replace, change, delete, ask what they have (door contract, 2.5 to 2.8). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { conflict, invalidRequest, namespaceMissing, notFound, PlatformError } from '../../errors.ts'
import { readOptionalBody, refuseBody } from '../../http/body.ts'
import type { Handlers } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson, wholeResponse } from '../../http/respond.ts'
import { namespaceOf } from '../../model/names.ts'
import { createdAtOf } from '../../model/organization.ts'
import { ServerChange, type ServerChanged, type ServerMade } from '../../model/server.ts'
import { validatorOf } from '../../schema/check.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf } from '../../storage/keys.ts'
import { introspectFor } from './introspection.ts'
import { about, requireLedServer } from './managed-server.ts'
import { isOperator, merged, trusted, withChange } from './merge.ts'
import { readQualifiedName } from './qualified-name.ts'
import { readWrite, serverBody } from './server-body.ts'
import type { ServerWriteDeps } from './server-deps.ts'
import type { Merge, StoredServer } from './server-records.ts'

const changeShape = validatorOf(ServerChange)

const access = { resource: 'servers', operation: 'write' } as const

type ServerWriteHandlers = Pick<Handlers, 'putServer' | 'changeServer' | 'deleteServer' | 'introspectServer'>

export function serverWriteHandlers(deps: ServerWriteDeps): ServerWriteHandlers {
  return {
    putServer: (request) => putServer(deps, request),
    changeServer: (request) => changeServer(deps, request),
    deleteServer: (request) => deleteServer(deps, request),
    introspectServer: (request) => introspectServer(deps, request),
  }
}

async function putServer(deps: ServerWriteDeps, request: Request): Promise<Response> {
  const { authorizer, audit, writes, servers } = deps
  const first = await writes.authenticate(request) // 401, 429
  const qualifiedName = readQualifiedName(request.url)
  if (qualifiedName === undefined) throw notFound(namespaceMissing)
  const namespace = namespaceOf(qualifiedName)
  await authorizer.requireManager(first, namespace, access, namespaceMissing) // 404, 403
  refuseQuery(request.url) // 400
  const body = await readWrite(request) // 400, 413
  const { mcpUrl } = body
  // Nothing is asked for a write that is refused.
  if (mcpUrl !== undefined) await refuseFixture(deps.store, keyOf('server', qualifiedName)) // 409
  // 400
  const introspected = mcpUrl === undefined ? undefined : await introspectFor(deps.upstream, first, mcpUrl, 'mcpUrl')
  let urlBefore: string | null = null
  const merge: Merge = async (context, before) => {
    await authorizer.requireManager(context, namespace, access, namespaceMissing) // 404, 403
    urlBefore = before?.detail.deploymentUrl ?? null
    return trusted(context, before, merged(qualifiedName, before, body, introspected))
  }
  const { stored, isNew, isChanged } = await servers.write(request, qualifiedName, merge) // 401, 400, 409
  const made = madeOf(stored)
  if (isChanged) await audit.recordDone(isNew ? 'server.created' : 'server.changed', about(first, qualifiedName))
  const warnings = warningsOf(introspected?.problems ?? [], urlBefore, stored)
  return new Response(JSON.stringify({ ...made, ...(warnings.length > 0 && { warnings }) }), {
    status: 201,
    headers: privateJson,
  })
}

async function changeServer(deps: ServerWriteDeps, request: Request): Promise<Response> {
  const { audit, writes, servers } = deps
  const first = await writes.authenticate(request) // 401, 429
  const qualifiedName = await requireServer(deps, first) // 404, 403
  refuseQuery(request.url) // 400
  const change = await readOptionalBody(request, changeShape, serverBody) // 400, 413
  // 401, 409
  const { isChanged } = await servers.write(request, qualifiedName, async (context, before) => {
    await requireServer(deps, context) // 404, 403
    if (change.verified !== undefined && !isOperator(context))
      throw new PlatformError('forbidden', 'verified: can be set by an operator only')
    if (before === undefined) throw notFound()
    return withChange(before, change)
  })
  if (isChanged) await audit.recordDone('server.changed', about(first, qualifiedName))
  return changedResponse(qualifiedName)
}

async function deleteServer(deps: ServerWriteDeps, request: Request): Promise<Response> {
  const { audit, writes, servers } = deps
  const first = await writes.authenticate(request) // 401, 429
  const qualifiedName = await requireServer(deps, first) // 404, 403
  refuseQuery(request.url) // 400
  await servers.remove(request, qualifiedName, (context) => requireServer(deps, context)) // 401, 404, 403, 409
  await audit.recordDone('server.deleted', about(first, qualifiedName))
  return changedResponse(qualifiedName)
}

async function introspectServer(deps: ServerWriteDeps, request: Request): Promise<Response> {
  const { audit, writes, servers } = deps
  const first = await writes.authenticate(request) // 401, 429
  const path = request.url.replace(/\/\.introspect(?=\/?(?:\?|$))/, '')
  const qualifiedName = await requireServer(deps, first, path) // 404, 403
  refuseQuery(request.url) // 400
  await refuseBody(request) // 400
  const url = (await servers.read(qualifiedName))?.detail.deploymentUrl ?? null
  if (url === null) throw invalidRequest('the server has no URL: send one as "mcpUrl" with PUT')
  await refuseFixture(deps.store, keyOf('server', qualifiedName)) // 409
  const { introspected, problems } = await introspectFor(deps.upstream, first, url, 'deploymentUrl') // 400
  if (problems.length > 0) throw new PlatformError('upstream_error', problems.join('; '))
  const { stored, isChanged } = await servers.write(request, qualifiedName, async (context, before) => {
    await requireServer(deps, context, path) // 404, 403
    if (before === undefined) throw notFound()
    // The URL changed meanwhile: discard the result of the introspection.
    if (before.detail.deploymentUrl !== url) throw conflict('The URL of this server was changed meanwhile: ask again') // 409
    return { ...before, detail: { ...before.detail, ...introspected } }
  })
  if (isChanged) await audit.recordDone('server.introspected', about(first, qualifiedName))
  return wholeResponse(request, JSON.stringify(stored.detail))
}

function requireServer({ authorizer }: ServerWriteDeps, context: RequestContext, path = context.request.url) {
  return requireLedServer(authorizer, context, readQualifiedName(path), 'write')
}

/** Keeps the stored value of each list that introspection did not return, unless the URL changed. */
function warningsOf(problems: readonly string[], urlBefore: string | null, { detail }: StoredServer): string[] {
  const { deploymentUrl, tools, resources, prompts } = detail
  const isOthers = urlBefore !== null && urlBefore !== deploymentUrl && (tools ?? resources ?? prompts) !== null
  return isOthers && problems.length > 0
    ? [...problems, `What is shown of it is still that of ${urlBefore}`]
    : [...problems]
}

function namesOf(qualifiedName: string): { readonly namespace: string; readonly server: string } {
  const namespace = namespaceOf(qualifiedName)
  return { namespace, server: qualifiedName.slice(namespace.length + 1) }
}

function madeOf({ detail, extras }: StoredServer): ServerMade {
  const { qualifiedName, displayName, description } = detail
  return { ...namesOf(qualifiedName), displayName, description, createdAt: createdAtOf(extras) }
}

function changedResponse(qualifiedName: string): Response {
  const changed: ServerChanged = { success: true, ...namesOf(qualifiedName) }
  return new Response(JSON.stringify(changed), { headers: privateJson })
}
