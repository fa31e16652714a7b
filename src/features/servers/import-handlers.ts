/** `POST /servers/.import`: an operator registers what another registry has, all servers in one write. */

import { auditedCaller } from '../../auth/authenticate.ts'
import { requireOperator } from '../../auth/authorizer.ts'
import { invalidRequest } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { wholeResponse } from '../../http/respond.ts'
import { importedServersMax } from '../../limits.ts'
import { ServersImport } from '../../model/server-json.ts'
import { validatorOf } from '../../schema/check.ts'
import { planImport, serversIn } from './import-servers.ts'
import type { ServerDeps } from './server-deps.ts'
import { serverBody } from './server-handlers.ts'

const importShape = validatorOf(ServersImport)

export const importHandlers = handlersOf({ importServers })

async function importServers({ store, audit, clock, writes }: ServerDeps, request: Request): Promise<Response> {
  const { caller, change } = await writes.begin(request, (context) =>
    requireOperator(context, 'Only operators may import servers', 'Imports of servers'),
  ) // 401, 429, 403, 400
  const body = await readOptionalBody(request, importShape, serverBody) // 400, 413
  const { namespace, owner } = body
  const documents = serversIn(body.servers)
  if (documents.length > importedServersMax)
    throw invalidRequest(`servers: has ${documents.length} servers; at most ${importedServersMax} are imported at once`)
  const options = { namespace, userId: caller.userId, owner, now: new Date(clock.now()) }
  const imported = await change(() => planImport(store, documents, options)) // 401, 403
  const counts = { servers: imported.servers.length, namespaces: imported.namespaces.length }
  if (counts.servers > 0) await audit.recordDone('servers.imported', { ...auditedCaller(caller), ...counts })
  return wholeResponse(request, JSON.stringify(imported))
}
