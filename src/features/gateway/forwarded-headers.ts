/** Which headers go upstream: of the client’s only those of MCP, and the connection’s own win. */

import type { Message } from './message.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** `more`: of the session. Names are in small letters. */
export function forwardedHeaders(
  { headers, message, ownHeaders }: Pick<UpstreamCall, 'headers' | 'message' | 'ownHeaders'>,
  more: Readonly<Record<string, string>>,
): Record<string, string> {
  const forwarded: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  headers.forEach((value, name) => {
    if (isForwarded(name, message.era)) forwarded[name] = value
  })
  Object.assign(forwarded, more)
  for (const [name, value] of Object.entries(ownHeaders)) forwarded[name.toLowerCase()] = value
  return forwarded
}

/**
 * What repeats the body goes on in the revision that has it, where it was compared with the body; in the other a server
 * may still believe it.
 */
function isForwarded(name: string, era: Message['era']): boolean {
  if (name === 'last-event-id') return true
  if (!name.startsWith('mcp-') || name === 'mcp-session-id') return false
  return era === 'stateless' || !(name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-'))
}
