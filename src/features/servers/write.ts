/** Servers over HTTP: make or replace, change, delete, ask what they have (door contract, 2.5 to 2.8). */

import { auditedCaller } from '../../auth/audited-caller.ts'
import type { Authorizer, RequestContext } from '../../auth/authorize.ts'
import { type WriteAuthenticationDeps, writeAuthentication } from '../../auth/write-authentication.ts'
import { conflict, invalidRequest, namespaceMissing, notFound, PlatformError } from '../../errors.ts'
import { readJsonBody, readOptionalBody } from '../../http/body.ts'
import { refuseQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import { jsonDepthMax, serverBodyBytesMax } from '../../limits.ts'
import { urlProblem } from '../../model/connection.ts'
import { namespaceOf } from '../../model/names.ts'
import { createdAtOf } from '../../model/registry.ts'
import {
  isSamePlace,
  ServerChange,
  type ServerChanged,
  type ServerDetail,
  type ServerMade,
  ServerWrite,
  sameNameProblem,
  serverUrlProblem,
} from '../../model/server.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { problemText, validatorOf } from '../../schema/check.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { serverKey } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import type { Introspection } from '../../upstream/introspect.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import { learn } from './learn.ts'
import { readQualifiedName } from './qualified-name.ts'
import { createServerRecords, type Merge, newDetail, type StoredServer, withUrl } from './records.ts'

export interface ServerWriteDeps extends WriteAuthenticationDeps {
  readonly store: Store
  readonly audit: Audit
  readonly upstream: Upstream
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const writeShape = validatorOf(ServerWrite)
const changeShape = validatorOf(ServerChange)

const access = { resource: 'servers', operation: 'write' } as const

type ServerWriteHandlers = Pick<Handlers, 'putServer' | 'changeServer' | 'deleteServer' | 'introspectServer'>

export function serverWriteHandlers(deps: ServerWriteDeps): ServerWriteHandlers {
  const { authorizer, audit } = deps
  const authenticateToWrite = writeAuthentication(deps)
  const records = createServerRecords(deps)

  return {
    async putServer(request) {
      const first = await authenticateToWrite(request) // 401, 429
      const qualifiedName = readQualifiedName(request.url)
      if (qualifiedName === undefined) throw notFound(namespaceMissing)
      const namespace = namespaceOf(qualifiedName)
      await authorizer.requireLed(first, namespace, access, namespaceMissing) // 404, 403
      refuseQuery(request.url) // 400
      const body = await readWrite(request) // 400, 413
      const { mcpUrl } = body
      // Nothing is asked for a write that is refused.
      if (mcpUrl !== undefined) await refuseFixture(deps.store, serverKey(qualifiedName)) // 409
      const learnt = mcpUrl === undefined ? undefined : await learn(deps.upstream, first, mcpUrl, 'mcpUrl') // 400
      const merge: Merge = async (context, before) => {
        await authorizer.requireLed(context, namespace, access, namespaceMissing) // 404, 403
        return trusted(context, before, merged(qualifiedName, before, body, learnt?.learnt))
      }
      const { stored, isNew, isChanged } = await records.write(request, qualifiedName, merge) // 401, 400, 409
      const made = madeOf(stored)
      if (isChanged) await audit.record(isNew ? 'server.created' : 'server.changed', about(first, qualifiedName))
      const warnings = learnt?.problems ?? []
      return new Response(JSON.stringify({ ...made, ...(warnings.length > 0 && { warnings }) }), {
        status: 201,
        headers: privateJson,
      })
    },

    async changeServer(request) {
      const first = await authenticateToWrite(request) // 401, 429
      const qualifiedName = await requireServer(first) // 404, 403
      refuseQuery(request.url) // 400
      const change = await readOptionalBody(request, changeShape, serverBody) // 400, 413
      // 401, 409
      const { isChanged } = await records.write(request, qualifiedName, async (context, before) => {
        await requireServer(context) // 404, 403
        if (change.verified !== undefined && !isOperator(context))
          throw new PlatformError('forbidden', 'verified: can be set by an operator only')
        if (before === undefined) throw notFound()
        return withChange(before, change)
      })
      if (isChanged) await audit.record('server.changed', about(first, qualifiedName))
      return changedResponse(qualifiedName)
    },

    async deleteServer(request) {
      const first = await authenticateToWrite(request) // 401, 429
      const qualifiedName = await requireServer(first) // 404, 403
      refuseQuery(request.url) // 400
      await records.remove(request, qualifiedName, requireServer) // 401, 404, 403, 409
      await audit.record('server.deleted', about(first, qualifiedName))
      return changedResponse(qualifiedName)
    },

    async introspectServer(request) {
      const first = await authenticateToWrite(request) // 401, 429
      const path = request.url.replace(/\/\.introspect(?=\/?(?:\?|$))/, '')
      const qualifiedName = await requireServer(first, path) // 404, 403
      refuseQuery(request.url) // 400
      const body = await readJsonBody(request) // 400
      if (body !== undefined && body !== null && JSON.stringify(body) !== '{}')
        throw invalidRequest('the body must be empty')
      const url = (await records.read(qualifiedName))?.detail.deploymentUrl ?? null
      if (url === null) throw invalidRequest('the server has no URL: send one as "mcpUrl" with PUT')
      await refuseFixture(deps.store, serverKey(qualifiedName)) // 409
      const { learnt, problems } = await learn(deps.upstream, first, url, 'deploymentUrl') // 400
      if (problems.length > 0) throw new PlatformError('upstream_error', problems.join('; '))
      const { stored, isChanged } = await records.write(request, qualifiedName, async (context, before) => {
        await requireServer(context, path) // 404, 403
        if (before === undefined) throw notFound()
        // What was learnt is not of the server that it points to now.
        if (before.detail.deploymentUrl !== url)
          throw conflict('The URL of this server was changed meanwhile: ask again') // 409
        return { ...before, detail: { ...before.detail, ...learnt } }
      })
      if (isChanged) await audit.record('server.introspected', about(first, qualifiedName))
      return new Response(JSON.stringify(stored.detail), { headers: privateJson })
    },
  }

  function requireServer(context: RequestContext, path = context.request.url): Promise<string> {
    return requireLedServer(authorizer, context, readQualifiedName(path), 'write')
  }
}

/** The server that the caller leads, which must be there. Throws 404 and 403 as for its namespace. */
export async function requireLedServer(
  authorizer: Authorizer,
  context: RequestContext,
  qualifiedName: string | undefined,
  operation: 'read' | 'write',
): Promise<string> {
  // As for one that is hidden: 404, whatever the policy says.
  if (qualifiedName === undefined || (await context.registry.serverJson(qualifiedName)) === undefined) throw notFound()
  const namespace = namespaceOf(qualifiedName)
  await authorizer.requireLed(context, namespace, { resource: 'servers', operation }, 'Server not found')
  return qualifiedName
}

/** Whether the caller may say that a server is verified: an operator as such, not with a token for an organization. */
function isOperator({ caller }: RequestContext): boolean {
  return caller.operator && caller.organizationId === undefined
}

/** A server that moves is no longer verified, unless an operator moves it. */
export function trusted(context: RequestContext, before: StoredServer | undefined, after: StoredServer): StoredServer {
  if (before === undefined || isOperator(context) || isSamePlace(before.detail, after.detail)) return after
  return { ...after, extras: { ...after.extras, verified: false } }
}

/** What a write makes of a server. Without `learnt`, what the server has stays as it was. */
function merged(
  qualifiedName: string,
  before: StoredServer | undefined,
  write: ServerWrite,
  learnt: Introspection['learnt'] | undefined,
): StoredServer {
  const { mcpUrl, tools, ...rest } = write
  const base = withChange(before ?? newDetail(qualifiedName), rest)
  const { remote, deploymentUrl, connections, resources, prompts } = rest
  const given: Partial<ServerDetail> = {
    ...(remote !== undefined && { remote }),
    ...(deploymentUrl !== undefined && { deploymentUrl }),
    ...(connections !== undefined && { connections }),
    ...(resources !== undefined && { resources }),
    ...(prompts !== undefined && { prompts }),
    ...(tools !== undefined && {
      tools: tools?.map(({ name, description = null, ...more }) => ({ name, description, ...more })) ?? null,
    }),
  }
  const detail = { ...base.detail, ...given, ...learnt }
  return { ...base, detail: mcpUrl === undefined ? detail : withUrl(detail, mcpUrl) }
}

function withChange(
  { detail, extras }: StoredServer,
  { displayName, description, iconUrl, ...rest }: ServerChange,
): StoredServer {
  const { homepage, repositoryUrl, backlinkUrl, license, unlisted, verified } = rest
  return {
    detail: {
      ...detail,
      ...(displayName !== undefined && { displayName }),
      ...(description !== undefined && { description }),
      ...(iconUrl !== undefined && { iconUrl }),
    },
    extras: {
      ...extras,
      ...(homepage !== undefined && { homepage }),
      ...(repositoryUrl !== undefined && { repositoryUrl }),
      ...(backlinkUrl !== undefined && { backlinkUrl }),
      ...(license !== undefined && { license }),
      ...(unlisted !== undefined && { unlisted }),
      ...(verified !== undefined && { verified }),
    },
  }
}

/** Bounds for the bodies of servers. */
export const serverBody = {
  bytesMax: serverBodyBytesMax,
  depthMax: jsonDepthMax,
  tooLarge: () => new PlatformError('too_large', `the body is too large: at most ${serverBodyBytesMax} bytes`),
}

async function readWrite(request: Request): Promise<ServerWrite> {
  const body = await readOptionalBody(request, writeShape, serverBody)
  const { mcpUrl, tools, deploymentUrl = null, connections = [] } = body
  for (const field of ['remote', 'deploymentUrl', 'connections', 'tools', 'resources', 'prompts'] as const) {
    if (mcpUrl !== undefined && body[field] !== undefined)
      throw invalidRequest(`${field}: cannot be combined with mcpUrl, which sets it`)
  }
  const wrongUrl = serverUrlProblem({ deploymentUrl, connections })
  if (wrongUrl !== undefined) throw invalidRequest(problemText(wrongUrl))
  const wrongMcpUrl = mcpUrl === undefined ? undefined : urlProblem(mcpUrl)
  if (wrongMcpUrl !== undefined) throw invalidRequest(`mcpUrl: ${wrongMcpUrl}`)
  const sameName = sameNameProblem(tools ?? null)
  if (sameName !== undefined) throw invalidRequest(problemText(sameName))
  return body
}

/** The caller of a write and its server, for the audit log. */
export function about({ caller }: RequestContext, qualifiedName: string) {
  return { ...auditedCaller(caller), server: qualifiedName }
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
