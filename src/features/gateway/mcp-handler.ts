/** `POST /connect/{namespace}/{connectionId}/mcp`: one JSON-RPC message to a connection (contract, 7). */

import { isFresh } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { cutText } from '../../schema/cut-text.ts'
import { authorizeCall, forward, type GatewayDeps } from './forward.ts'
import { type Message, readMessage } from './message.ts'

export interface McpDeps extends GatewayDeps {
  /** The `WWW-Authenticate` of a 401, which leads a client to sign in; undefined if it cannot sign in here. */
  readonly challenge: ((request: Request) => string) | undefined
  /** Hears of each client that a request came from, by its own name. */
  readonly noteClient?: (ref: ConnectionRef, userId: string, client: string) => void
}

export const mcpHandlers = handlersOf({ callMcp })

async function callMcp(deps: McpDeps, request: Request): Promise<Response> {
  const call = await authorizeCall(deps, request).catch(withChallenge(deps, request)) // 401, 429, 404, 403
  refuseQuery(request.url) // 400
  const message = await readMessage(request) // 400, 413, 429
  if (message instanceof Response) return message // 400
  const { headers } = request
  deps.noteClient?.(call.connection, call.context.caller.userId, clientOf(message, headers))
  // 401, 429, 404, 403 once more, and what forward() throws
  return forward(deps, isFresh(deps, call.context) ? call : await call.renew(), message, headers)
}

/** Characters of a client's name that are noted. Past it: cut. */
const clientCharsMax = 100

/** The name that a client greets with, or else that of its program. */
function clientOf({ body }: Message, headers: Headers): string {
  const { clientInfo } = (body['params'] ?? {}) as { clientInfo?: { name?: unknown } }
  const name = typeof clientInfo?.name === 'string' ? clientInfo.name : headers.get('user-agent')
  return cutText(name ?? 'unknown', clientCharsMax)
}

/** Adds the challenge to a 401. */
export function withChallenge({ challenge }: Pick<McpDeps, 'challenge'>, request: Request): (thrown: unknown) => never {
  return (thrown) => {
    const isUnauthorized = thrown instanceof PlatformError && thrown.code === 'unauthorized'
    if (!isUnauthorized || challenge === undefined) throw thrown
    const { code, message } = thrown
    throw new PlatformError(code, message, { rpcHeaders: { 'www-authenticate': challenge(request) } })
  }
}
