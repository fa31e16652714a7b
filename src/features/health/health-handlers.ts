/** `GET /connect/{namespace}/.health`, `POST /connect/{namespace}/{connectionId}/.test` and `GET /overview`. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { openText, sealText } from '../../auth/secrets.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { refuseBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { readInteger, readQuery, refuseQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import type { Health, HealthPage } from '../../model/health.ts'
import { isConnectionId } from '../../model/names.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { createProbing } from '../connections/probing.ts'
import { testOne } from '../connections/writer.ts'
import { everySeenBatch } from '../endpoint/seen-connections.ts'
import { overviewOf } from './overview.ts'
import { type HealthDeps, healthNow, healthOfAll, needsSomebody } from './stored-health.ts'

/** Contract 22.1: connections on a page of a list of health, and ids in the query of such a list. Past it: 400. */
const healthPageMax = 100
/** Contract 22.1: connections that one request for a list of health looks at. Past it: the page ends early, with a cursor. */
const lookedAtMax = 2000

export const healthHandlers = handlersOf({ listHealth, testConnection, getOverview })

async function listHealth(deps: HealthDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  return answer(request, await whileAllowed(deps, context, (now) => healthPage(deps, now)))
}

async function healthPage(deps: HealthDeps, context: RequestContext): Promise<HealthPage> {
  const { authorizer, store, cursorKey } = deps
  const { request } = context
  const { namespace } = await authorizer.requireNamespace(context, namesInPath(request.url)[0], 'read') // 404, 403
  const query = readQuery(request.url, ['ids', 'limit', 'cursor']) // 400
  const ids = query.get('ids')?.split(',')
  if (ids !== undefined && (query.size > 1 || ids.length > healthPageMax || !ids.every(isConnectionId)))
    throw invalidRequest(`ids: must be up to ${healthPageMax} ids with commas between them, without other parameters`)
  if (ids !== undefined) {
    const refs = [...new Set(ids)].map((connectionId) => ({ namespace, connectionId }))
    return { connections: await healthOfAll(deps, context, refs), nextCursor: null }
  }
  const limit = readInteger(query, 'limit', { least: 1, most: healthPageMax, otherwise: healthPageMax }) // 400
  const cursor = query.get('cursor')
  const binding = `health ${namespace}`
  const connectionId = cursor === undefined ? '' : openText(cursorKey, cursor, binding)
  if (connectionId === undefined) throw invalidRequest('cursor: not valid for this namespace; start again without it')
  const found: Health[] = []
  let looked = 0
  let next: string | undefined
  const slices = allowanceOf(request).slices()
  const wanted = { namespace, from: { namespace, connectionId }, most: healthPageMax, namespacesMax: 1 }
  for await (const refs of everySeenBatch(store, context, wanted)) {
    if (refs === 'more') break
    if (looked >= lookedAtMax) next = refs[0]?.connectionId
    if (next !== undefined) break
    looked += refs.length
    for (const one of await healthOfAll(deps, context, refs)) {
      if (!needsSomebody(one)) continue
      if (found.length === limit) next ??= one.connectionId
      else found.push(one)
    }
    if (slices.isOver) await slices.next() // 429
  }
  const nextCursor = next === undefined ? null : sealText(cursorKey, next, binding)
  return { connections: found, nextCursor }
}

function answer(request: Request, body: HealthPage | Health | object): Response {
  return wholeResponse(request, JSON.stringify(body), { headers: noStoreJson })
}

async function testConnection(deps: HealthDeps, request: Request): Promise<Response> {
  const { authorizer, writes } = deps
  const context = await writes.authenticate(request) // 401, 429
  const { namespace, connectionId } = await authorizer.requireConnection(context, 'execute') // 404, 403
  refuseQuery(request.url) // 400
  await refuseBody(request) // 400
  const ref = { namespace, connectionId }
  const probing = createProbing(deps.upstream, context)
  const queue = `the connection ${namespace}/${connectionId}`
  const tested = await decideAgain(queue, async () => {
    // Nobody waits for the server meanwhile, only for the decision after it.
    await probing.ask() // 400
    return allowanceOf(request).write(queue, async () => {
      const now = await authorizer.authenticate(request, true) // 401
      const { stored } = await authorizer.requireConnection(now, 'execute') // 404, 403
      return testOne(deps, { ref, context: now }, probing, stored)
    }) // 429
  }) // 503
  return answer(request, await healthNow(deps, context, ref, tested))
}

async function getOverview(deps: HealthDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  refuseQuery(request.url) // 400
  return answer(request, await whileAllowed(deps, context, (now) => overviewOf(deps, now))) // 401, 429
}
