/** `GET /connect/{namespace}/.tools` (contract, 20.11): the tools of all connections, over plain HTTP. */

import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { Answer } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { enterEndpoint } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { requireAccess } from './endpoint-request.ts'
import { joiningTexts, type Shown, withLists } from './joined-lists.ts'

/** Own names, as the caller's token lets them through, from the kept lists. */
export const listNamespaceTools: Answer<EndpointDeps> = async (deps, request) => {
  const entered = await enterEndpoint(deps, request) // 401, 429, 404, 403
  const {
    context,
    namespace: { namespace },
  } = entered
  await requireAccess(deps, entered, { rpc: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }, id: null }) // 403
  readQuery(request.url, []) // 400
  const body = await withLists(deps, context, { namespace, mayAsk: true }, async (shownAt) =>
    allowanceOf(request).run(writing(await shownAt(46))),
  ) // 400, 429
  // It may have waited for servers. The policy is the same.
  await enterEndpoint(deps, request, true) // 401, 404, 403
  return wholeResponse(request, body, { headers: noStoreJson })
}

function* writing(shown: readonly Shown[]): Work<string> {
  const parts: string[] = []
  for (const { connectionId, lists, problem } of shown) {
    const tools = lists && (yield* joiningTexts(lists.tools, (one) => one.ownJson))
    const part = tools === undefined ? JSON.stringify(problem) : `{"tools":[${tools}]}`
    parts.push(`${JSON.stringify(connectionId)}:${part}`)
  }
  return `{${parts.join()}}`
}
