/**
 * Releases of servers, as the original's command line publishes them: `PUT …/releases` registers a server's URL, and
 * `GET …/releases/{id}` shows the last one (contract, 9.10). Nothing is built or hosted.
 */

import { randomBytes } from 'node:crypto'
import type { RequestContext } from '../../auth/authorizer.ts'
import { timestampOf } from '../../clock.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { mediaType, parseJson, readBytes } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { pathOf } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { type Release, type ReleaseMade, ReleasePayload } from '../../model/server.ts'
import { bodyProblemText, problemText, validatorOf } from '../../schema/check.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf } from '../../storage/keys.ts'
import { trusted, withUrl } from './changed-server.ts'
import { about, introspectFor, readQualifiedName, requireLedServer } from './managed-server.ts'
import type { ServerDeps } from './server-deps.ts'
import { serverBody } from './server-handlers.ts'
import { storedServer, writeServer } from './server-records.ts'

const payloadShape = validatorOf(ReleasePayload)

export const releaseHandlers = handlersOf({ createRelease, getRelease })

async function createRelease(deps: ServerDeps, request: Request): Promise<Response> {
  // 401, 429, 404, 403, 400
  const write = await deps.writes.begin(request, (context) => requireServer(deps, context, 'write'))
  const { caller, allowed: qualifiedName } = write
  const { upstreamUrl, configSchema } = await readPayload(request) // 400, 413
  await refuseFixture(deps.store, keyOf('server', qualifiedName)) // 409
  const url = { url: upstreamUrl, field: 'payload.upstreamUrl' }
  const found = await introspectFor(deps.upstream, url, request, caller) // 400
  const { introspected, problems } = found
  const id = `rel_${randomBytes(12).toString('base64url')}`
  await writeServer(deps, write, qualifiedName, (before) => {
    if (before === undefined) throw notFound()
    const { detail, extras } = before
    const has = { ...detail, ...introspected }
    const release = { id, createdAt: timestampOf(deps.clock), upstreamUrl }
    const after = { detail: withUrl(has, upstreamUrl, configSchema), extras: { ...extras, release } }
    return trusted(write, before, after)
  })
  await deps.audit.recordDone('server.changed', { ...about(caller, qualifiedName), release: id })
  const made: ReleaseMade = {
    deploymentId: id,
    status: 'SUCCESS',
    mcpUrl: upstreamUrl,
    ...(problems.length > 0 && { warnings: [...problems] }),
  }
  return new Response(JSON.stringify(made), { status: 202, headers: privateJson })
}

async function getRelease(deps: ServerDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  const qualifiedName = await requireServer(deps, context, 'read') // 404, 403
  refuseQuery(request.url) // 400
  const last = (await storedServer(deps.store, request, qualifiedName))?.extras.release
  const wanted = pathOf(request.url).replace(/\/$/, '').split('/').at(-1)
  if (last === undefined || last.id !== wanted) throw notFound()
  const { id, createdAt, upstreamUrl } = last
  const release: Release = {
    id,
    status: 'SUCCESS',
    type: 'external',
    createdAt,
    updatedAt: createdAt,
    mcpUrl: upstreamUrl,
    upstreamUrl,
  }
  return new Response(JSON.stringify(release), { headers: privateJson })
}

function requireServer({ authorizer }: ServerDeps, context: RequestContext, operation: 'read' | 'write') {
  const path = context.request.url.replace(/\/releases(?:\/[^/?]*)?\/?(?:\?.*)?$/, '')
  return requireLedServer(authorizer, context, readQualifiedName(path), operation)
}

/** The form's `payload`. Throws 400, 413. */
async function readPayload(request: Request): Promise<ReleasePayload> {
  const type = request.headers.get('content-type')
  if (mediaType(type) !== 'multipart/form-data') throw invalidRequest('content-type: must be multipart/form-data')
  const bytes = await readBytes(request, serverBody.tooLarge)
  const form = await new Response(bytes, { headers: { 'content-type': type as string } }).formData().catch(() => {
    throw invalidRequest('the body is not a form')
  })
  const payloads = form.getAll('payload')
  const [payload] = payloads
  if (payloads.length !== 1 || typeof payload !== 'string') throw invalidRequest('payload: must be given once, as text')
  const read = await parseJson(request, Buffer.from(payload), serverBody)
  if ('problem' in read) throw invalidRequest(`payload: ${problemText(read.problem)}`)
  const { value } = read
  if (payloadShape.isValid(value)) return value
  throw invalidRequest(`payload: ${bodyProblemText(payloadShape.firstProblem(value))}`)
}
