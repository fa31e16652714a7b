/**
 * Opens a platform session: one that the platform holds with an upstream for clients that send no session id (MCP
 * 2025-11-25, lifecycle).
 */

import { toResponse, type UpstreamResponse } from '../../upstream/upstream.ts'
import { version } from '../../version.ts'
import { parsingResponse } from './filter-tools.ts'
import { readMessages } from './relayed-stream.ts'
import type { Post } from './send-with-credentials.ts'
import type { PlatformSession } from './sessions.ts'
import type { UpstreamCall } from './upstream-call.ts'

/**
 * Characters of the protocol version that a server negotiates; so far they are dates. Past it: treated as 2025-11-25.
 */
const protocolVersionCharsMax = 32

/** The newest revision with a handshake; a server that supports only older ones negotiates down. */
const handshakeVersion = '2025-11-25'

/**
 * Sends `initialize` and, if the upstream returns a session id, `notifications/initialized`. Rejects with
 * UpstreamError, and with PlatformError for a response that cannot be parsed.
 */
export async function openPlatformSession(call: UpstreamCall, post: Post): Promise<PlatformSession> {
  const params = { protocolVersion: handshakeVersion, capabilities: {}, clientInfo: { name: 'postern', version } }
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
  if (response.status >= 300) return { id: null, protocolVersion: handshakeVersion }
  const protocolVersion = (await negotiatedVersion(response, call)) ?? handshakeVersion
  if (id === undefined) return { id: null, protocolVersion }
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
  const done = await post(own, JSON.stringify(initialized), {
    'mcp-session-id': id,
    'mcp-protocol-version': protocolVersion,
  })
  discardBody(done)
  return { id, protocolVersion }
}

/** Undefined if the upstream names no version, or one longer than `protocolVersionCharsMax`. */
async function negotiatedVersion(
  response: UpstreamResponse,
  { message: { id }, allowance }: UpstreamCall,
): Promise<string | undefined> {
  let negotiated: string | undefined
  const take = (message: unknown) => {
    const { result } = (message ?? {}) as { result?: { protocolVersion?: unknown } | null }
    const { protocolVersion } = result ?? {}
    if (typeof protocolVersion === 'string' && protocolVersion.length <= protocolVersionCharsMax)
      negotiated = protocolVersion
    return result !== undefined
  }
  await readMessages(toResponse(response), id, take, (text) => allowance.parse(text.length, parsingResponse(text)))
  return negotiated
}

/** Cancels a body that will not be read, so that its connection is released. */
export function discardBody({ body }: UpstreamResponse): void {
  if (body instanceof ReadableStream) void body.cancel().catch(() => {})
}
