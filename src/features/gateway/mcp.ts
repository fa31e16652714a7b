/** `POST /connect/{namespace}/{connectionId}/mcp`: one JSON-RPC message to a connection (contract, gateway). */

import { refuseQuery } from '../../http/query.ts'
import type { Handlers } from '../../http/router.ts'
import { authorizeCall, forward, type GatewayDeps, reauthorize } from './forward.ts'
import { protocolEra, readMessage } from './message.ts'

export function mcpHandlers(deps: GatewayDeps): Pick<Handlers, 'callMcp'> {
  return {
    async callMcp(request) {
      const call = await authorizeCall(deps, request) // 401, 429, 404, 403
      refuseQuery(request.url) // 400
      const message = await readMessage(request, (work) => deps.turns.run(call.context.caller, work)) // 400, 413, 429
      const era = await protocolEra(message, request.headers)
      if (era instanceof Response) return era // 400
      // 401, 429, 404, 403 once more, and what forward() throws
      return forward(deps, await reauthorize(deps, call), { ...message, era }, request.headers)
    },
  }
}
