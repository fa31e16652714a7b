/** Connections (spec 4.2; contract, gateway): list, create, replace, read, delete. Each walk of a request stands here, top to bottom. */

import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import {
  type Asking,
  ask,
  enterConnection,
  enterNamespace,
  expectAllowed,
  type Place,
  partsOf,
  sees,
} from '../access/namespace.ts'
import type { Audit } from '../audit/audit-log.ts'
import type { Refusals } from '../audit/refusals.ts'
import type { Authenticator } from '../auth/authenticate.ts'
import { invalidRequest, namespaceFull, notFound, rateLimited } from '../errors.ts'
import { atOnce } from '../http/at-once.ts'
import { readJsonBody } from '../http/body.ts'
import type { Edge } from '../http/edge.ts'
import { refuseQuery } from '../http/query.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { privateJson } from '../http/respond.ts'
import { grantsKeptMax, grantUrlCharsMax } from '../limits.ts'
import type { Connection, ConnectionWrite, Deleted } from '../model/connection.ts'
import { isConnectionId } from '../model/names.ts'
import { then } from '../model/soon.ts'
import {
  connectionBytes,
  connectionChange,
  findConnection,
  type Quota,
  type StoredConnection,
} from '../storage/connections.ts'
import type { KnownConnections } from '../storage/known-connections.ts'
import type { Store } from '../storage/store.ts'
import { learn } from '../upstream/hello.ts'
import { type Upstream, UpstreamError } from '../upstream/upstream.ts'
import type { ConnectionLists, ListRequest, Page } from './list.ts'
import { newConnectionId } from './names.ts'
import { readListQuery } from './query.ts'
import { type Draft, draftChanged, draftNew, expectWritable, readWrite, type Writing } from './write.ts'

export interface ConnectionDeps {
  readonly authenticator: Authenticator
  readonly ready: Edge['ready']
  readonly lists: ConnectionLists
  readonly refusals: Refusals
  readonly audit: Audit
  readonly store: Store
  readonly connections: KnownConnections
  readonly upstream: Upstream
  readonly headersKey: Buffer
  /** By API key. */
  readonly writes: RateLimit
  readonly quota: Quota
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export function connectionRoutes(deps: ConnectionDeps) {
  const { ready, lists, audit, store, connections } = deps

  const recordWrite = (event: string, { caller }: Asking, { namespace, connectionId }: Place) =>
    audit.record(event, { userId: caller.userId, keyId: caller.keyId, jti: caller.token?.jti, namespace, connectionId })

  return new Elysia({ name: 'connections' })
    .get(
      '/connect/:namespace',
      atOnce(({ request }) => {
        const asking = ask(deps, request) // 401
        const list = then(asking, (asking) => granted(asking) ?? grant(asking, lists)) // 404, 403, 400
        return then(list, (list) => lists.page(list, (page) => answeredPage(page, request)))
      }),
    )

    .get('/connect/:namespace/:connectionId', async ({ request }) => {
      const { stored } = await enterConnection(await ask(deps, request), connections, 'read') // 404, 403
      refuseQuery(request.url) // 400
      return answered(stored.bytes)
    })

    .post(
      '/connect/:namespace',
      async ({ request }) => {
        const namespace = await enterNamespace(await askToWrite(request), partsOf(request)[0], 'write') // 404, 403
        refuseQuery(request.url) // 400
        const write = readWrite(await readJsonBody(request)) // 400
        for (;;) {
          const place = { namespace, connectionId: newConnectionId() }
          const made = await create(write, place, request)
          if (made !== 'taken') return answered(made, 201)
        }
      },
      { parse: 'none' },
    )

    .put(
      '/connect/:namespace/:connectionId',
      async ({ request }) => {
        const [name, connectionId] = partsOf(request)
        const namespace = await enterNamespace(await askToWrite(request), name, 'write') // 404, 403
        if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
        refuseQuery(request.url) // 400
        const write = readWrite(await readJsonBody(request)) // 400
        const place = { namespace, connectionId }
        // Again as often as somebody else was faster.
        for (;;) {
          const before = await findConnection(store, namespace, connectionId)
          const done =
            before === undefined ? await create(write, place, request) : await replace(write, place, before, request)
          if (done !== 'taken') return answered(done, before === undefined ? 201 : 200)
        }
      },
      { parse: 'none' },
    )

    .delete(
      '/connect/:namespace/:connectionId',
      async ({ request }) => {
        let asking = await askToWrite(request) // 401, 429
        for (; ; asking = await ask(deps, request)) {
          const { stored, ...place } = await enterConnection(asking, connections, 'write') // 404, 403
          refuseQuery(request.url) // 400
          const change = connectionChange(place.namespace, place.connectionId, stored, undefined)
          if (!(await store.commit(change)).ok) continue
          await recordWrite('connection.deleted', asking, place)
          const answer: Deleted = { success: true }
          return answered(Buffer.from(JSON.stringify(answer)))
        }
      },
      { parse: 'none' },
    )

  function answeredPage({ body, etag, headers }: Page, request: Request): Response {
    return isUnchanged(request, etag) ? ready(request, null, headers, 304) : ready(request, body, headers)
  }

  /** Throws 401, and 429 where the caller's key writes too much. */
  async function askToWrite(request: Request): Promise<Asking> {
    const asking = await ask(deps, request)
    const wait = deps.writes.take(asking.caller.keyId)
    if (wait === 0) return asking
    deps.refusals.write(request, asking.caller, undefined, 'rate_limited')
    throw rateLimited('This API key writes too many connections', wait)
  }

  /** Makes the connection, durable when this resolves. 'taken' where there is one of this id by now. Throws 400, 403. */
  async function create(write: ConnectionWrite, place: Place, request: Request): Promise<Uint8Array | 'taken'> {
    const writing: Writing = { asking: await ask(deps, request), place, headersKey: deps.headersKey }
    const draft = await draftWritable(write, writing)
    const connection = await greeted(draft, writing.asking)
    return commit('connection.created', connection, draft, place, undefined, request)
  }

  /** Throws 400, 403. */
  async function draftWritable(write: ConnectionWrite, writing: Writing): Promise<Draft> {
    const draft = await draftNew(write, writing, new Date(deps.now()))
    expectWritable(writing, { ...draft.connection, status: { state: 'connected' } })
    return draft
  }

  /** Throws 404 for one that the caller does not see, 403, 400, 409. */
  async function replace(
    write: ConnectionWrite,
    place: Place,
    before: StoredConnection,
    request: Request,
  ): Promise<Uint8Array | 'taken'> {
    const asking = await ask(deps, request)
    const writing: Writing = { asking, place, headersKey: deps.headersKey }
    // What it does not see is answered like an id that is free, as far as that goes: 400 and 403 come first there too.
    if (!sees(asking, place, before)) await draftWritable(write, writing)
    expectAllowed(asking, place, before, 'write')
    const draft = draftChanged(write, before, writing)
    const { status, serverInfo } = before.connection
    const same: Connection = { ...draft.connection, status, ...(serverInfo && { serverInfo }) }
    expectWritable(writing, same)
    // Other headers, or another query of the URL, may find the server in another mood.
    const isOther = write.headers !== undefined || draft.connection.mcpUrl !== before.connection.mcpUrl
    return commit('connection.changed', isOther ? await greeted(draft, asking) : same, draft, place, before, request)
  }

  /** With what its server told. Throws `invalid_request` where we may not go there. */
  async function greeted({ connection, headers }: Draft, { caller, request }: Asking): Promise<Connection> {
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

  async function commit(
    event: string,
    connection: Connection,
    { beside }: Draft,
    place: Place,
    before: StoredConnection | undefined,
    request: Request,
  ): Promise<Uint8Array | 'taken'> {
    // The body and the first contact took their time: what was revoked meanwhile writes nothing.
    const asking = await ask(deps, request)
    await enterNamespace(asking, place.namespace, 'write')
    expectWritable({ asking, place, headersKey: deps.headersKey }, connection)
    const change = connectionChange(place.namespace, place.connectionId, before, { connection, beside }, deps.quota)
    const committed = await store.commit(change)
    if (!committed.ok && committed.full.length > 0) {
      deps.refusals.write(request, asking.caller, place.namespace, 'namespace_full')
      throw namespaceFull(place.namespace)
    }
    if (!committed.ok) return 'taken'
    await recordWrite(event, asking, place)
    return connectionBytes(connection)
  }
}

function answered(body: Uint8Array, status = 200): Response {
  return new Response(body as Uint8Array<ArrayBuffer>, { status, headers: privateJson })
}

/**
 * Grants by caller and URL. A caller stands for one generation of the registry, so what it was granted holds
 * as long as it does; a client that asks the same again is spared the way there. Long URLs are not kept.
 */
const grants = new LRUCache<string, ListRequest>({ max: grantsKeptMax })

function granted({ caller, request }: Asking): ListRequest | undefined {
  return grants.get(`${caller.serial} ${request.url}`)
}

/** What the caller asks for, once it is clear that it may. Throws 404, 403 and 400, in this order. */
async function grant(asking: Asking, lists: ConnectionLists): Promise<ListRequest> {
  const { caller, request } = asking
  const namespace = await enterNamespace(asking, partsOf(request)[0], 'read')
  const query = readListQuery(request.url)
  const list = lists.request({ namespace, filters: query.filters, blocks: caller.blocks }, query, caller.rowScope)
  if (request.url.length <= grantUrlCharsMax) grants.set(`${caller.serial} ${request.url}`, list)
  return list
}

/** RFC 9110, 13.1.2: a list of tags, compared weakly. */
function isUnchanged(request: Request, etag: string | undefined): boolean {
  const known = request.headers.get('if-none-match')
  return known !== null && etag !== undefined && (known === '*' || known.includes(etag))
}
