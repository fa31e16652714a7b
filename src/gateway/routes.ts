/** `POST /connect/{namespace}/{connectionId}/mcp` (contract, gateway). */

import { Elysia } from 'elysia'
import { refuseQuery } from '../http/query.ts'
import { enter, exchange, type GatewayDeps, stillEntered } from './exchange.ts'
import { eraOf, readMessage } from './message.ts'
import { asRpcError, RpcError, rpcErrorResponse } from './rpc-error.ts'

export function gatewayRoutes(deps: GatewayDeps) {
  return new Elysia({ name: 'gateway' })
    .post(
      '/connect/:namespace/:connectionId/mcp',
      async ({ request }) => {
        try {
          const entered = await enter(deps, request) // 401, 404, 403
          refuseQuery(request.url)
          const { caller } = entered.asking
          const message = await readMessage(request, (work) => deps.turns.run(caller, work)) // 400, 413
          const era = await eraOf(message, request.headers)
          if (era instanceof Response) return era // 400
          return await exchange(deps, await stillEntered(deps, entered, request), { ...message, era }, request.headers) // 403, and what the upstream says
        } catch (thrown) {
          const error = asRpcError(thrown)
          if (error === undefined) throw thrown
          return rpcErrorResponse(error)
        }
      },
      { parse: 'none' },
    )
    .all(
      '/connect/:namespace/:connectionId/mcp',
      () =>
        rpcErrorResponse(
          new RpcError('method_not_allowed', 'This path answers POST only', { headers: { allow: 'POST' } }),
        ),
      { parse: 'none' },
    )
}
