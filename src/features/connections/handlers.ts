/**
 * The handlers for connections (specification 4.2; contract, gateway): list, read, create, replace, delete. A comment
 * beside a line lists the error statuses that the line can produce.
 */

import type { RequestContext } from '../../auth/authorize.ts'
import { type WriteAuthenticationDeps, writeAuthentication } from '../../auth/write-authentication.ts'
import { notFound } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { isUnchanged, privateJson, wholeResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import type { Deleted } from '../../model/connection.ts'
import { newConnectionId } from '../../model/made-names.ts'
import { isConnectionId } from '../../model/names.ts'
import { findConnection } from '../../storage/connections.ts'
import { readWrite } from './draft.ts'
import type { ConnectionLists, Page, PreparedList } from './list.ts'
import { readListQuery } from './query.ts'
import { createConnectionWriter, type WriterDeps } from './writer.ts'

export interface ConnectionDeps extends WriterDeps, WriteAuthenticationDeps {
  readonly lists: ConnectionLists
  /** Called with each page that was built, so that the fast lane can reuse it. */
  readonly onPage: (context: RequestContext, list: PreparedList, page: Page) => void
}

type ConnectionHandlers = Pick<
  Handlers,
  'listConnections' | 'getConnection' | 'createConnection' | 'replaceConnection' | 'deleteConnection'
>

export function connectionHandlers(deps: ConnectionDeps): ConnectionHandlers {
  const { authorizer, lists, store } = deps
  const writer = createConnectionWriter(deps)
  const authenticateToWrite = writeAuthentication(deps)

  return {
    async listConnections(request) {
      const context = await authorizer.authenticate(request) // 401, 429
      const namespace = await authorizer.requireNamespace(context, namesInPath(request.url)[0], 'read') // 404, 403
      const query = readListQuery(request.url) // 400
      const { blocks, metadataFingerprint } = context.caller
      const list = lists.prepare({ namespace, filters: query.filters, blocks }, query, metadataFingerprint) // 400
      const page = await lists.readPage(list)
      deps.onPage(context, list, page)
      return pageResponse(page, request) // 200, 304
    },

    async getConnection(request) {
      const context = await authorizer.authenticate(request) // 401, 429
      const { stored } = await authorizer.requireConnection(context, 'read') // 404, 403
      refuseQuery(request.url) // 400
      return connectionResponse(stored.bytes)
    },

    async createConnection(request) {
      const context = await authenticateToWrite(request) // 401, 429
      const namespace = await authorizer.requireNamespace(context, namesInPath(request.url)[0], 'write') // 404, 403
      refuseQuery(request.url) // 400
      const write = readWrite(await readJsonBody(request)) // 400
      // The generated id may be taken; then another one is generated.
      for (;;) {
        const created = await writer.create(write, { namespace, connectionId: newConnectionId() }, context) // 400, 403
        if (created !== 'conflict') return connectionResponse(created, 201)
      }
    },

    async replaceConnection(request) {
      const context = await authenticateToWrite(request) // 401, 429
      const [name, connectionId] = namesInPath(request.url)
      const namespace = await authorizer.requireNamespace(context, name, 'write') // 404, 403
      if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
      refuseQuery(request.url) // 400
      const write = readWrite(await readJsonBody(request)) // 400
      const ref = { namespace, connectionId }
      // Repeated until no concurrent write to the same connection comes first.
      for (;;) {
        const before = await findConnection(store, namespace, connectionId)
        const written =
          before === undefined
            ? await writer.create(write, ref, context) // 400, 403
            : await writer.replace(write, ref, before, context) // 404, 403, 400, 409
        if (written !== 'conflict') return connectionResponse(written, before === undefined ? 201 : 200)
      }
    },

    async deleteConnection(request) {
      let context = await authenticateToWrite(request) // 401, 429
      for (; ; context = await authorizer.authenticate(request)) {
        const { stored, ...ref } = await authorizer.requireConnection(context, 'write') // 404, 403
        refuseQuery(request.url) // 400
        if (!(await writer.delete(ref, stored, context))) continue
        const deleted: Deleted = { success: true }
        return connectionResponse(Buffer.from(JSON.stringify(deleted)))
      }
    },
  }
}

function connectionResponse(body: Uint8Array, status = 200): Response {
  return new Response(body as Uint8Array<ArrayBuffer>, { status, headers: privateJson })
}

function pageResponse({ body, etag }: Page, request: Request): Response {
  const headers = etag === undefined ? privateJson : { ...privateJson, etag }
  return isUnchanged(request, etag)
    ? new Response(null, { status: 304, headers })
    : wholeResponse(request, body, { headers })
}
