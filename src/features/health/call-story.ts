/** `GET /calls/{requestId}`: one call, with what else is known of it (contract, 18.5). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { notFound } from '../../errors.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import type { CallStory } from '../../model/health.ts'
import type { CallFilter, RecordedCall } from '../../ops/call-filter.ts'
import { fieldsOf, LinesBack } from '../records/page-back.ts'
import { shownCall } from '../records/readable-calls.ts'
import { RecentCalls } from '../records/recent-calls.ts'
import { type HealthDeps, healthOfAll } from './stored-health.ts'

export const callStoryHandlers = handlersOf({ getCall })

async function getCall(deps: HealthDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  const story = await whileAllowed(deps, context, (now) => storyOf(deps, now)) // 401
  return wholeResponse(request, JSON.stringify(story), { headers: noStoreJson })
}

async function storyOf(deps: HealthDeps, context: RequestContext): Promise<CallStory> {
  const { request } = context
  const [requestId = ''] = namesInPath(request.url)
  const query = readQuery(request.url, ['time', 'tool']) // 400
  const call = await callOf(deps, context, { requestId, time: query.get('time'), tool: query.get('tool') })
  if (call === undefined) throw notFound()
  const { namespace = '', connectionId = '', time = '' } = call
  const [connection = null] = await healthOfAll(deps, context, [{ namespace, connectionId }], Date.parse(time))
  const { operator, token } = context.caller
  const audit = operator && token === undefined ? await auditOf(deps, request, requestId) : []
  return { call: shownCall(context, call), connection, audit }
}

/**
 * The last call of this request that the caller may read. A client may choose the id of its request, and repeat it: the
 * time and the tool, as the list has them, tell calls of one id apart.
 */
async function callOf(
  deps: HealthDeps,
  context: RequestContext,
  { time, ...wanted }: Pick<CallFilter, 'requestId' | 'tool'> & { readonly time: string | undefined },
): Promise<RecordedCall | undefined> {
  for await (const lines of new RecentCalls(deps, context, { ...wanted, since: Number.NEGATIVE_INFINITY }).lines) {
    const found = lines.find((call) => time === undefined || call.time === time)
    if (found !== undefined) return found
  }
  return undefined
}

/** The entries of the audit log about the same request, the newest first. */
async function auditOf({ auditPath }: HealthDeps, request: Request, requestId: string): Promise<object[]> {
  const found: object[] = []
  for await (const lines of new LinesBack(request, auditPath).lines)
    for (const { text } of lines) {
      const entry = text.includes(requestId) ? fieldsOf(text) : undefined
      if (entry?.['requestId'] === requestId) found.push(entry)
    }
  return found
}
