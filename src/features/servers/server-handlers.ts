/** Servers over HTTP: read (specification 4.3), make, replace, change, delete, introspect (contract, 9.6 to 9.9). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { conflict, invalidRequest, namespaceMissing, notFound, PlatformError } from '../../errors.ts'
import { bodyTooLarge, readOptionalBody, refuseBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson, wholeResponse } from '../../http/respond.ts'
import { jsonDepthMax } from '../../limits.ts'
import { namespaceOf } from '../../model/names.ts'
import { createdAtOf } from '../../model/organization.ts'
import { ServerChange, type ServerChanged, type ServerMade, ServerWrite, sameNameProblem } from '../../model/server.ts'
import { problemText, validatorOf } from '../../schema/check.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf } from '../../storage/keys.ts'
import { isOperator, merged, trusted, withChange } from './changed-server.ts'
import { about, introspectFor, readQualifiedName, requireLedServer } from './managed-server.ts'
import type { ServerDeps } from './server-deps.ts'
import { removeServer, type StoredServer, storedServer, writeServer } from './server-records.ts'

/** Ours: values in the objects and arrays of a body that writes a server; postern parses the record of a server again and again. Past it: 400. */
const serverValuesMax = 50_000

/** The bounds of bodies that write a server. */
export const serverBody = {
  depthMax: jsonDepthMax,
  valuesMax: serverValuesMax,
  tooLarge: bodyTooLarge,
}

const writeShape = validatorOf(ServerWrite)
const changeShape = validatorOf(ServerChange)

export const serverHandlers = handlersOf({ getServer, putServer, changeServer, deleteServer, introspectServer })

async function getServer({ authorizer, onAnswer }: ServerDeps, request: Request): Promise<Response> {
  const context = await authorizer.authenticate(request) // 401, 429
  const qualifiedName = readQualifiedName(request.url)
  // Registered servers are visible to every caller whose policy does not hide them, so 404 precedes 403.
  const json = qualifiedName === undefined ? undefined : await context.directory.serverJson(qualifiedName)
  if (qualifiedName === undefined || json === undefined) throw notFound()
  authorizer.requireAllowed(context, namespaceOf(qualifiedName), { resource: 'servers', operation: 'read' }) // 404, 403
  refuseQuery(request.url) // 400
  onAnswer(context, json)
  return wholeResponse(request, json)
}

async function putServer(deps: ServerDeps, request: Request): Promise<Response> {
  const { authorizer, audit, writes } = deps
  const write = await writes.begin(request, async (context) => {
    const name = readQualifiedName(request.url)
    if (name === undefined) throw notFound(namespaceMissing)
    await authorizer.requireManager(context, namespaceOf(name), { resource: 'servers', operation: 'write' })
    return name
  }) // 401, 429, 404, 403, 400
  const { caller, allowed: qualifiedName } = write
  const body = await readWrite(request) // 400, 413
  const { mcpUrl } = body
  // Nothing is asked for a write that is refused.
  if (mcpUrl !== undefined) await refuseFixture(deps.store, keyOf('server', qualifiedName)) // 409
  const given = mcpUrl === undefined ? undefined : { url: mcpUrl, field: 'mcpUrl' }
  const introspected = given && (await introspectFor(deps.upstream, given, request, caller)) // 400
  let urlBefore: string | null = null
  const { stored, isNew, isChanged } = await writeServer(deps, write, qualifiedName, (before) => {
    urlBefore = before?.detail.deploymentUrl ?? null
    return trusted(write, before, merged(qualifiedName, before, body, introspected))
  }) // 401, 400, 409
  if (isChanged) await audit.recordDone(isNew ? 'server.created' : 'server.changed', about(caller, qualifiedName))
  const warnings = warningsOf(introspected?.problems ?? [], urlBefore, stored)
  const made: ServerMade = { ...madeOf(stored), ...(warnings.length > 0 && { warnings }) }
  return new Response(JSON.stringify(made), { status: 201, headers: privateJson })
}

async function changeServer(deps: ServerDeps, request: Request): Promise<Response> {
  const write = await deps.writes.begin(request, ledServer(deps)) // 401, 429, 404, 403, 400
  const { caller, allowed: qualifiedName } = write
  const change = await readOptionalBody(request, changeShape, serverBody) // 400, 413
  const { isChanged } = await writeServer(deps, write, qualifiedName, (before) => {
    if (change.verified !== undefined && !isOperator(write))
      throw new PlatformError('forbidden', 'verified: can be set by an operator only')
    if (before === undefined) throw notFound()
    return withChange(before, change)
  }) // 401, 409
  if (isChanged) await deps.audit.recordDone('server.changed', about(caller, qualifiedName))
  return changedResponse(qualifiedName)
}

async function deleteServer(deps: ServerDeps, request: Request): Promise<Response> {
  const write = await deps.writes.begin(request, ledServer(deps), 'removal') // 401, 429, 404, 403, 400
  const { caller, allowed: qualifiedName } = write
  await removeServer(deps.store, write, qualifiedName) // 401, 404, 403, 409
  await deps.audit.recordDone('server.deleted', about(caller, qualifiedName))
  return changedResponse(qualifiedName)
}

async function introspectServer(deps: ServerDeps, request: Request): Promise<Response> {
  const path = request.url.replace(/\/\.introspect(?=\/?(?:\?|$))/, '')
  const write = await deps.writes.begin(request, ledServer(deps, path)) // 401, 429, 404, 403, 400
  const { caller, allowed: qualifiedName } = write
  await refuseBody(request) // 400
  const url = (await storedServer(deps.store, request, qualifiedName))?.detail.deploymentUrl ?? null
  if (url === null)
    throw invalidRequest('the server has no URL: give it one with `postern server add`, or over HTTP as "mcpUrl"')
  await refuseFixture(deps.store, keyOf('server', qualifiedName)) // 409
  // 400
  const found = await introspectFor(deps.upstream, { url, field: 'deploymentUrl' }, request, caller)
  const { introspected, problems } = found
  if (problems.length > 0) throw new PlatformError('upstream_error', problems.join('; '))
  const { stored, isChanged } = await writeServer(deps, write, qualifiedName, (before) => {
    if (before === undefined) throw notFound()
    // The URL changed meanwhile: discard the result of the introspection. 409
    if (before.detail.deploymentUrl !== url) throw conflict('The URL of this server was changed meanwhile: ask again')
    return { ...before, detail: { ...before.detail, ...introspected } }
  })
  if (isChanged) await deps.audit.recordDone('server.introspected', about(caller, qualifiedName))
  return wholeResponse(request, JSON.stringify(stored.detail))
}

/** The body of `PUT`, with what its schema does not say. Throws 400 and 413. */
async function readWrite(request: Request): Promise<ServerWrite> {
  const body = await readOptionalBody(request, writeShape, serverBody)
  const { mcpUrl, tools } = body
  for (const field of ['remote', 'deploymentUrl', 'connections', 'tools', 'resources', 'prompts'] as const) {
    if (mcpUrl !== undefined && body[field] !== undefined)
      throw invalidRequest(`${field}: cannot be combined with mcpUrl, which sets it`)
  }
  const sameName = sameNameProblem(tools ?? null)
  if (sameName !== undefined) throw invalidRequest(problemText(sameName))
  return body
}

function ledServer({ authorizer }: ServerDeps, path?: string): (context: RequestContext) => Promise<string> {
  return (context) => requireLedServer(authorizer, context, readQualifiedName(path ?? context.request.url), 'write')
}

/** Keeps the stored value of each list that introspection did not return, unless the URL changed. */
function warningsOf(problems: readonly string[], urlBefore: string | null, { detail }: StoredServer): string[] {
  const { deploymentUrl, tools, resources, prompts } = detail
  const isOthers = urlBefore !== null && urlBefore !== deploymentUrl && (tools ?? resources ?? prompts) !== null
  return isOthers && problems.length > 0
    ? [...problems, `The lists shown are still those of ${urlBefore}`]
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
