/**
 * Connections (specification 4.2; contract, gateway): list, create, replace, read, delete. Each handler is the walk of
 * its request, top to bottom, with the statuses that each line may answer.
 */

import { type Authorizer, type ConnectionRef, type RequestContext, sees } from '../../auth/authorize.ts'
import type { Denials } from '../../auth/denials.ts'
import { invalidRequest, namespaceFull, notFound, rateLimited } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { pathSegments } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import { isUnchanged, privateJson } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import type { Connection, ConnectionWrite, Deleted } from '../../model/connection.ts'
import { isConnectionId } from '../../model/names.ts'
import type { Audit } from '../../ops/audit-log.ts'
import {
  connectionBytes,
  connectionChange,
  findConnection,
  type Quota,
  type StoredConnection,
} from '../../storage/connections.ts'
import type { Store } from '../../storage/store.ts'
import { learn } from '../../upstream/probe.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'
import type { ConnectionLists, ListRequest, Page } from './list.ts'
import { newConnectionId } from './new-id.ts'
import { readListQuery } from './query.ts'
import { type Draft, draftChanged, draftNew, expectWritable, readWrite } from './write.ts'

export interface ConnectionDeps {
  readonly authorizer: Authorizer
  readonly lists: ConnectionLists
  /** Told of each page that was made: it may answer the next request for it. */
  readonly onPage: (context: RequestContext, list: ListRequest, page: Page) => void
  readonly denials: Denials
  readonly audit: Audit
  readonly store: Store
  readonly upstream: Upstream
  readonly headersKey: Buffer
  /** By API key. */
  readonly writes: RateLimit
  readonly quota: Quota
  /** Milliseconds since 1970. */
  readonly now: () => number
}

type ConnectionHandlers = Pick<
  Handlers,
  'listConnections' | 'getConnection' | 'createConnection' | 'replaceConnection' | 'deleteConnection'
>

export function connectionHandlers(deps: ConnectionDeps): ConnectionHandlers {
  const { authorizer, lists, denials, audit, store, headersKey } = deps

  return {
    async listConnections(request) {
      const context = await authorizer.authenticate(request) // 401
      const namespace = await authorizer.namespace(context, pathSegments(request.url)[0], 'read') // 404, 403
      const query = readListQuery(request.url) // 400
      const { blocks, metadataFingerprint } = context.caller
      const list = lists.request({ namespace, filters: query.filters, blocks }, query, metadataFingerprint) // 400
      const page = await lists.page(list)
      deps.onPage(context, list, page)
      return pageResponse(page, request) // 200, 304
    },

    async getConnection(request) {
      const context = await authorizer.authenticate(request) // 401
      const { stored } = await authorizer.connection(context, 'read') // 404, 403
      refuseQuery(request.url) // 400
      return connectionResponse(stored.bytes)
    },

    async createConnection(request) {
      const context = await authenticateToWrite(request) // 401, 429
      const namespace = await authorizer.namespace(context, pathSegments(request.url)[0], 'write') // 404, 403
      refuseQuery(request.url) // 400
      const write = readWrite(await readJsonBody(request)) // 400
      for (;;) {
        const created = await create(write, { namespace, connectionId: newConnectionId() }, context) // 400, 403
        if (created !== 'taken') return connectionResponse(created, 201)
      }
    },

    async replaceConnection(request) {
      const context = await authenticateToWrite(request) // 401, 429
      const [name, connectionId] = pathSegments(request.url)
      const namespace = await authorizer.namespace(context, name, 'write') // 404, 403
      if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
      refuseQuery(request.url) // 400
      const write = readWrite(await readJsonBody(request)) // 400
      const ref = { namespace, connectionId }
      // Again as often as somebody else was faster.
      for (;;) {
        const before = await findConnection(store, namespace, connectionId)
        const written =
          before === undefined
            ? await create(write, ref, context) // 400, 403
            : await replace(write, ref, before, context) // 404, 403, 400, 409
        if (written !== 'taken') return connectionResponse(written, before === undefined ? 201 : 200)
      }
    },

    async deleteConnection(request) {
      let context = await authenticateToWrite(request) // 401, 429
      for (; ; context = await authorizer.authenticate(request)) {
        const { stored, ...ref } = await authorizer.connection(context, 'write') // 404, 403
        refuseQuery(request.url) // 400
        const change = connectionChange(ref.namespace, ref.connectionId, stored, undefined)
        if (!(await store.commit(change)).ok) continue
        await recordWrite('connection.deleted', context, ref)
        const answer: Deleted = { success: true }
        return connectionResponse(Buffer.from(JSON.stringify(answer)))
      }
    },
  }

  /** Throws 401, and 429 where the caller's key writes too much. */
  async function authenticateToWrite(request: Request): Promise<RequestContext> {
    const context = await authorizer.authenticate(request)
    const wait = deps.writes.take(context.caller.keyId)
    if (wait === 0) return context
    denials.write(request, context.caller, undefined, 'rate_limited')
    throw rateLimited('This API key writes too many connections', wait)
  }

  /** The new connection, durable when this resolves. 'taken' where there is one of this id by now. Throws 400, 403. */
  async function create(
    write: ConnectionWrite,
    ref: ConnectionRef,
    context: RequestContext,
  ): Promise<Uint8Array | 'taken'> {
    const draft = await draftWritable(write, ref, context)
    return commit('connection.created', await probed(draft, context), draft, ref, undefined, context)
  }

  /** Throws 400, 403. */
  async function draftWritable(write: ConnectionWrite, ref: ConnectionRef, context: RequestContext): Promise<Draft> {
    const draft = await draftNew(write, { context, ref, headersKey }, new Date(deps.now()))
    expectWritable(context, ref, { ...draft.connection, status: { state: 'connected' } })
    return draft
  }

  /** Throws 404 for one that the caller does not see, 403, 400, 409. */
  async function replace(
    write: ConnectionWrite,
    ref: ConnectionRef,
    before: StoredConnection,
    context: RequestContext,
  ): Promise<Uint8Array | 'taken'> {
    // What it does not see is answered like an id that is free, as far as that goes: 400 and 403 come first there too.
    if (!sees(context, ref, before)) await draftWritable(write, ref, context)
    authorizer.stored(context, ref, before, 'write')
    const draft = draftChanged(write, before, { ref, headersKey })
    const { status, serverInfo } = before.connection
    const same: Connection = { ...draft.connection, status, ...(serverInfo && { serverInfo }) }
    expectWritable(context, ref, same)
    // Other headers, or another query of the URL, may find the server in another mood.
    const isOther = write.headers !== undefined || draft.connection.mcpUrl !== before.connection.mcpUrl
    return commit('connection.changed', isOther ? await probed(draft, context) : same, draft, ref, before, context)
  }

  /** With what its server told. Throws `invalid_request` where we may not go there. */
  async function probed({ connection, headers }: Draft, { caller, request }: RequestContext): Promise<Connection> {
    if (connection.mock?.enabled === true || connection.mcpUrl === null) {
      return { ...connection, status: { state: 'connected' } }
    }
    const asked = { holder: caller, via: request.headers.get('via') ?? undefined }
    try {
      return { ...connection, ...(await learn(deps.upstream, connection.mcpUrl, headers, asked)) }
    } catch (error) {
      if (error instanceof UpstreamError) throw invalidRequest(`mcpUrl: ${error.message}`)
      throw error
    }
  }

  /** Throws 401, 404, 403: the body and the probe took their time, and what was revoked meanwhile writes nothing. */
  async function commit(
    event: string,
    connection: Connection,
    { beside }: Draft,
    ref: ConnectionRef,
    before: StoredConnection | undefined,
    { request }: RequestContext,
  ): Promise<Uint8Array | 'taken'> {
    const context = await authorizer.authenticate(request)
    await authorizer.namespace(context, ref.namespace, 'write')
    expectWritable(context, ref, connection)
    const change = connectionChange(ref.namespace, ref.connectionId, before, { connection, beside }, deps.quota)
    const committed = await store.commit(change)
    if (!committed.ok && committed.full.length > 0) {
      denials.write(request, context.caller, ref.namespace, 'namespace_full')
      throw namespaceFull(ref.namespace)
    }
    if (!committed.ok) return 'taken'
    await recordWrite(event, context, ref)
    return connectionBytes(connection)
  }

  function recordWrite(event: string, { caller }: RequestContext, ref: ConnectionRef): Promise<void> {
    const { userId, keyId, token } = caller
    return audit.record(event, { userId, keyId, jti: token?.jti, ...ref })
  }
}

function connectionResponse(body: Uint8Array, status = 200): Response {
  return new Response(body as Uint8Array<ArrayBuffer>, { status, headers: privateJson })
}

function pageResponse({ body, etag }: Page, request: Request): Response {
  const headers = etag === undefined ? privateJson : { ...privateJson, etag }
  return isUnchanged(request, etag) ? new Response(null, { status: 304, headers }) : new Response(body, { headers })
}
