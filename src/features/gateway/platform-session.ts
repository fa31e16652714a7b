/** Opens a session that the platform holds with an upstream for clients without one (MCP 2025-11-25, lifecycle). */

import { PlatformError } from '../../errors.ts'
import { upstreamSessionIdCharsMax } from '../../limits.ts'
import { newestHandshake, ownClientInfo } from '../../model/mcp.ts'
import { toResponse, type UpstreamResponse } from '../../upstream/upstream.ts'
import { parsingResponse } from './filter-tools.ts'
import { readMessages } from './relayed-stream.ts'
import type { Post } from './send-with-credentials.ts'
import { type PlatformSession, readGreeting } from './sessions.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** Characters of the protocol version that a server negotiates, so far a date. Past it: treated as 2025-11-25. */
const protocolVersionCharsMax = 32

/**
 * Sends `initialize` and, if the upstream returns a session id, `notifications/initialized`. Rejects with
 * UpstreamError, and with PlatformError for a response that cannot be parsed.
 */
export async function openPlatformSession(call: UpstreamCall, post: Post): Promise<PlatformSession> {
  const { capabilities, clientInfo } = call.greeting ?? { capabilities: {}, clientInfo: ownClientInfo }
  const params = { protocolVersion: newestHandshake, capabilities, clientInfo }
  const initialize = { jsonrpc: '2.0', id: 'postern', method: 'initialize', params }
  // Without the client's MCP headers, which describe its own request, and without its abort signal: other requests may
  // be waiting for the same session.
  const own: UpstreamCall = {
    ...call,
    headers: new Headers(),
    signal: undefined,
    progress: { isSent: false, isAnswered: false },
    requireAccess: () => undefined,
  }
  const response = await post(own, JSON.stringify(initialize), {})
  const { 'mcp-session-id': id } = response.headers
  // The server may need no handshake, or speak the stateless revision only. The call is sent without a session, and the
  // server's own error, if any, reaches the client.
  if (response.status >= 300) return { id: null, protocolVersion: newestHandshake }
  const result = await resultIn(response, call)
  const greeting = result && readGreeting(result)
  const { protocolVersion: negotiated } = result ?? {}
  const isVersion = typeof negotiated === 'string' && negotiated.length <= protocolVersionCharsMax
  const protocolVersion = isVersion ? negotiated : newestHandshake
  if (id === undefined) return { id: null, protocolVersion, greeting }
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
  if (id.length > upstreamSessionIdCharsMax)
    throw new PlatformError(
      'upstream_error',
      `The MCP server’s session id has more than ${upstreamSessionIdCharsMax} characters`,
      { id: call.message.id },
    )
  const done = await post(own, JSON.stringify(initialized), {
    'mcp-session-id': id,
    'mcp-protocol-version': protocolVersion,
  })
  discardBody(done)
  return { id, protocolVersion, greeting }
}

/** The result of `initialize`; undefined if the response has none. */
async function resultIn(
  response: UpstreamResponse,
  { message: { id }, allowance, holder, memory }: UpstreamCall,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  let found: Readonly<Record<string, unknown>> | undefined
  const take = (message: unknown) => {
    const { result } = (message ?? {}) as { result?: unknown }
    if (typeof result === 'object' && result !== null) found = result as NonNullable<typeof found>
    return result !== undefined
  }
  const read = async (text: string) => allowance.parse(text.length, parsingResponse(text))
  await readMessages(toResponse(response), id, { take, read, owner: { holder, memory, allowance } })
  return found
}

/** Cancels a body that will not be read, so that its connection is released. */
export function discardBody({ body }: UpstreamResponse): void {
  if (body instanceof ReadableStream) void body.cancel().catch(() => {})
}
