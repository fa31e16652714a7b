/**
 * `GET /connect/{namespace}/.tools` (contract, 20.11): the tools of all connections that the caller sees, over plain
 * HTTP.
 */

import type { Answer } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { enterEndpoint } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { withLists } from './joined-lists.ts'

/** Own names, as the caller's token lets them through, from the kept lists. */
export const listNamespaceTools: Answer<EndpointDeps> = async (deps, request) => {
  const { context, namespace } = await enterEndpoint(deps, request) // 401, 429, 404, 403
  readQuery(request.url, []) // 400
  const asked = { namespace: namespace.namespace, length: 46, mayAsk: true } as const
  // 400, 429
  return withLists(deps, context, asked, (shown) => {
    const parts = shown.map(({ ref, lists, problem }) => {
      const tools = lists?.tools.map(({ definition }) => JSON.stringify(definition)).join()
      const part = tools === undefined ? JSON.stringify(problem) : `{"tools":[${tools}]}`
      return `${JSON.stringify(ref.connectionId)}:${part}`
    })
    return wholeResponse(request, `{${parts.join()}}`, { headers: noStoreJson })
  })
}
