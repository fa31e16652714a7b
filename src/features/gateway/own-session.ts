/** Opening a session of the platform’s own at an upstream, for a client that has none (MCP 2025-11-25, lifecycle). */

import type { Turns } from '../../http/turns.ts'
import { protocolVersionCharsMax } from '../../limits.ts'
import { toResponse, type UpstreamResponse } from '../../upstream/upstream.ts'
import { version } from '../../version.ts'
import { parseWork } from './filter-tools.ts'
import type { OwnSession } from './sessions.ts'
import { messagesOf } from './stream.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** Sends a body with these headers more, for the call’s connection. Rejects with UpstreamError. */
export type Post = (
  call: UpstreamCall,
  body: Uint8Array | string,
  more: Readonly<Record<string, string>>,
) => Promise<UpstreamResponse>

const handshakeVersion = '2025-11-25'

/** Rejects with UpstreamError, and with PlatformError for a response that cannot be read. */
export async function openOwnSession(call: UpstreamCall, post: Post, turns: Turns): Promise<OwnSession> {
  const params = { protocolVersion: handshakeVersion, capabilities: {}, clientInfo: { name: 'postern', version } }
  const initialize = { jsonrpc: '2.0', id: 'postern', method: 'initialize', params }
  // The client's own words about the protocol are about its own request, and others may wait for this session too.
  const own = { ...call, headers: new Headers(), signal: undefined }
  const response = await post(own, JSON.stringify(initialize), {})
  const { 'mcp-session-id': id } = response.headers
  // One that needs no handshake, or knows another: it is called without, and says itself what is wrong.
  if (response.status >= 300) return { id: null, protocolVersion: handshakeVersion }
  const protocolVersion = (await negotiatedVersion(response, call, turns)) ?? handshakeVersion
  if (id === undefined) return { id: null, protocolVersion }
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
  const done = await post(own, JSON.stringify(initialized), {
    'mcp-session-id': id,
    'mcp-protocol-version': protocolVersion,
  })
  discardBody(done)
  return { id, protocolVersion }
}

async function negotiatedVersion(
  response: UpstreamResponse,
  { message: { id }, holder }: UpstreamCall,
  turns: Turns,
): Promise<string | undefined> {
  let negotiated: string | undefined
  const take = (message: unknown) => {
    const { result } = (message ?? {}) as { result?: { protocolVersion?: unknown } | null }
    const { protocolVersion } = result ?? {}
    if (typeof protocolVersion === 'string' && protocolVersion.length <= protocolVersionCharsMax)
      negotiated = protocolVersion
    return result !== undefined
  }
  await messagesOf(toResponse(response), id, take, (text) => turns.run(holder, parseWork(text)))
  return negotiated
}

/** Nobody reads it. */
export function discardBody({ body }: UpstreamResponse): void {
  if (body instanceof ReadableStream) void body.cancel().catch(() => {})
}
