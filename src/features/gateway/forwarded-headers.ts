/**
 * The headers sent upstream: only MCP headers of the client and those that name its trace, and the connection's own
 * headers, which take precedence.
 */

import type { Message } from './message.ts'
import type { UpstreamCall } from './upstream-call.ts'

/**
 * `more`: session headers, which override the client's. The connection's own headers override everything but headers
 * that say how the body is read, or repeat it: the body was checked as UTF-8 JSON; and but the session, which all
 * callers would share. All names in the result are lower case.
 */
export function forwardedHeaders(
  { headers, message, connectionHeaders }: Pick<UpstreamCall, 'headers' | 'message' | 'connectionHeaders'>,
  more: Readonly<Record<string, string>>,
): Record<string, string> {
  const forwarded: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  for (const name of headers.keys()) if (isForwarded(name, message.era)) forwarded[name] = headers.get(name) ?? ''
  Object.assign(forwarded, more)
  for (const [given, value] of Object.entries(connectionHeaders)) {
    const name = given.toLowerCase()
    // `Content-Type: application/json; charset=utf-7` made a server read another tool's name than was checked.
    const describesBody = name.startsWith('content-') || name === 'expect'
    if (!repeatsBody(name) && !describesBody && name !== 'mcp-session-id') forwarded[name] = value
  }
  return forwarded
}

/**
 * `Mcp-Method`, `Mcp-Name` and `Mcp-Param-…` repeat the body. They are forwarded in the stateless era only, where they
 * were compared with the body (message.ts). In the handshake era they are unchecked, and a server might still trust
 * them. `Mcp-Session-Id` is never copied: the client's value is sealed, and the upstream's comes in `more`.
 */
export function isForwarded(name: string, era: Message['era']): boolean {
  // W3C Trace Context: with tracing on, our own span takes its place (`upstream/traced-upstream.ts`).
  if (name === 'last-event-id' || name === 'traceparent' || name === 'tracestate') return true
  if (!name.startsWith('mcp-') || name === 'mcp-session-id') return false
  return era === 'stateless' || !repeatsBody(name)
}

/** By a name in lower case. */
function repeatsBody(name: string): boolean {
  return name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-')
}
