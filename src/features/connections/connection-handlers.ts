/** Handlers for connections (specification 4.2; contract, 5 and 6). Comments beside lines list their error statuses. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { conflict, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { ordinaryBody, readJsonBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, privateJson, wholeResponse } from '../../http/respond.ts'
import { responseInOnePieceBytesMax } from '../../limits.ts'
import type { ConnectionWrite } from '../../model/connection.ts'
import { newConnectionId } from '../../model/made-names.ts'
import { isConnectionId } from '../../model/names.ts'
import { findConnection, isSameConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import type { ConnectionLists, Page, PreparedList } from './connection-lists.ts'
import { readWrite } from './draft.ts'
import { readListQuery } from './list-query.ts'
import { createProbing } from './probing.ts'
import { createOne, deleteOne, replaceOne, type WriterDeps } from './writer.ts'

/** Ours: values in the objects and arrays of a body that writes a connection; every request that reads the connection parses them. Past it: 400. */
const connectionValuesMax = 1000
/** Many connections are in memory together, so that few texts of each would add up. */
const connectionBody = { ...ordinaryBody, valuesMax: connectionValuesMax, hashedTextsMin: 0 }

/**
 * Milliseconds of the event loop for a pair of metadata in a write: the store changes a part of the index for it, and
 * another for the former pair. Counted against `ownerTimeShare`. Past it: the owner waits.
 */
const pairMs = 0.16
/** Pairs that take no time to speak of; most connections have fewer. Past it: each takes its time. */
const fewPairs = 8

interface ConnectionDeps extends WriterDeps {
  readonly lists: ConnectionLists
  /**
   * Called with each page of at most `responseInOnePieceBytesMax`, so that the fast lane can repeat it: a larger one
   * takes its owner's time, and counts for its owner until its client has read it.
   */
  readonly onPage: (context: RequestContext, list: PreparedList, page: Page) => void
}

export const connectionHandlers = handlersOf({
  ...{ listConnections, getConnection, createConnection, replaceConnection, deleteConnection },
})

async function listConnections(deps: ConnectionDeps, request: Request): Promise<Response> {
  const { authorizer, lists } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const { now, list, page } = await whileAllowed(deps, context, async (now) => {
    const { namespace } = await authorizer.requireNamespace(now, namesInPath(request.url)[0], 'read') // 404, 403
    const query = readListQuery(request.url) // 400
    const { blocks, metadataFingerprint } = now.caller
    const list = lists.prepare({ namespace, filters: query.filters, blocks }, query, metadataFingerprint) // 400
    return { now, list, page: await lists.readPage(list, allowanceOf(request).slices()) } // 429
  }) // 401
  if (page.body.length <= responseInOnePieceBytesMax) deps.onPage(now, list, page)
  return wholeResponse(request, page.body, { etag: page.etag }) // 200, 304, 429
}

async function getConnection(deps: ConnectionDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const { stored } = await authorizer.requireConnection(context, 'read') // 404, 403
  refuseQuery(request.url) // 400
  return connectionResponse(stored.bytes)
}

async function createConnection(deps: ConnectionDeps, request: Request): Promise<Response> {
  const { authorizer, writes } = deps
  const context = await writes.authenticate(request) // 401, 429
  const { namespace } = await authorizer.requireNamespace(context, namesInPath(request.url)[0], 'write') // 404, 403
  refuseQuery(request.url) // 400
  const write = readWrite(await readJsonBody(request, connectionBody)) // 400
  const probing = createProbing(deps.upstream, context)
  await paceIndex(request, write)
  // The generated id may be taken; then another one is generated.
  const created = await decideAgain(`the namespace ${namespace}`, async () => {
    await probing.ask() // 400
    const ref = { namespace, connectionId: newConnectionId() }
    return allowanceOf(request).commit(async () =>
      createOne(deps, { write, ref, context: await mayWriteNow(deps, request) }, probing),
    ) // 401, 404, 403, 400, 429
  })
  return connectionResponse(created, 201)
}

async function replaceConnection(deps: ConnectionDeps, request: Request): Promise<Response> {
  const { authorizer, store, writes } = deps
  const context = await writes.authenticate(request) // 401, 429
  const [name, connectionId] = namesInPath(request.url)
  const { namespace } = await authorizer.requireNamespace(context, name, 'write') // 404, 403
  if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
  refuseQuery(request.url) // 400
  const write = readWrite(await readJsonBody(request, connectionBody)) // 400
  const probing = createProbing(deps.upstream, context)
  const queue = queueOf(request)
  // A write that names no server is for that of the connection as it was when the request came.
  const isForThisOne = write.mcpUrl === undefined && write.server === undefined
  const known = isForThisOne ? await findConnection(store, namespace, connectionId) : undefined
  await paceIndex(request, write)
  return decideAgain(queue, async () => {
    // Nobody waits for the server meanwhile, only for the decision after it.
    await probing.ask() // 400
    return allowanceOf(request).write(queue, async () => {
      const now = await mayWriteNow(deps, request) // 401, 404, 403
      const asked = { write, ref: { namespace, connectionId }, context: now }
      const before = await findConnection(store, namespace, connectionId)
      if (isForThisOne && !isSameConnection(known, before))
        throw conflict(
          'The connection was deleted and created again, or its URL was changed, in the meantime: read it and try again',
        )
      const written =
        before === undefined
          ? await createOne(deps, asked, probing) // 400, 403
          : await replaceOne(deps, asked, probing, before) // 404, 403, 400, 409
      return written === 'again' ? written : connectionResponse(written, before === undefined ? 201 : 200)
    }) // 429
  }) // 503
}

async function deleteConnection(deps: ConnectionDeps, request: Request): Promise<Response> {
  const { authorizer, writes } = deps
  // Where it waited for its turn, its credential may have been revoked meanwhile.
  const decideNow = async () => {
    const context = await authorizer.authenticate(request, true) // 401
    const { stored, ...ref } = await authorizer.requireConnection(context, 'write') // 404, 403
    refuseQuery(request.url) // 400
    if (!(await deleteOne(deps, ref, stored, context))) return 'again'
    return doneResponse()
  }
  await writes.authenticate(request) // 401, 429
  const response = await allowanceOf(request).commit(decideNow, 'removal') // 429
  if (response !== 'again') return response
  // Somebody wrote it meanwhile. Now it is before all writes that wait.
  const queue = queueOf(request)
  return decideAgain(queue, () => allowanceOf(request).write(queue, decideNow, 'removal')) // 429, 503
}

/** Once for a request, however often its write is decided, and before it has a place, which others wait for. */
async function paceIndex(request: Request, { metadata }: Pick<ConnectionWrite, 'metadata'>): Promise<void> {
  const pairs = Object.keys(metadata ?? {}).length
  if (pairs > fewPairs) await allowanceOf(request).pace(pairs * pairMs)
}

/** The caller of a write whose body, or whose server, took its time. Throws 401, 404, 403. */
async function mayWriteNow({ authorizer }: ConnectionDeps, request: Request): Promise<RequestContext> {
  const context = await authorizer.authenticate(request, true)
  await authorizer.requireNamespace(context, namesInPath(request.url)[0], 'write')
  return context
}

/** The name of the queue of writes to the connection in the path. */
function queueOf(request: Request): string {
  return `the connection ${namesInPath(request.url).join('/')}`
}

function connectionResponse(body: Uint8Array, status = 200): Response {
  return new Response(body as Uint8Array<ArrayBuffer>, { status, headers: privateJson })
}
