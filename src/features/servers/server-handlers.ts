/** `GET /servers/{qualifiedName}`: the details of a registered server (specification 4.3). */

import { notFound } from '../../errors.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import { namespaceOf } from '../../model/names.ts'
import { readQualifiedName } from './qualified-name.ts'
import type { ServerDeps } from './server-deps.ts'

export const serverHandlers = handlersOf({ getServer })

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
