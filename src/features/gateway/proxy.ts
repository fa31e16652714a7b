/**
 * Sends one message to a connection's upstream, within a session if one is needed, and returns the client's response.
 * The bytes that the policy was evaluated on are the bytes sent. A request is retried only after a 404 for an unknown
 * platform session, and a `tools/call` never.
 */

import type { Fairness } from '../../fairness/fairness.ts'
import type { Upstream, UpstreamResponse } from '../../upstream/upstream.ts'
import { createCallSlots, type TakeSlot } from './call-slots.ts'
import { clientResponse } from './client-response.ts'
import { discardBody, openPlatformSession } from './platform-session.ts'
import { createPost, type Post } from './send-with-credentials.ts'
import type { PlatformSession, Sessions } from './sessions.ts'
import type { UpstreamCall } from './upstream-call.ts'
import { sessionExpired, unusableUpstream, upstreamFailure } from './upstream-failure.ts'

export interface ProxyOptions {
  readonly upstream: Upstream
  readonly sessions: Sessions
  /** Accounts for the bytes of responses that clients have not read yet. */
  readonly fairness: Pick<Fairness, 'memory' | 'turns'>
  /** Milliseconds until the response head must have arrived. */
  readonly timeoutMs: number
}

/** The session in which a message is sent. */
type Session =
  /** Opened by the client. `id` is the upstream's session id. */
  | { readonly kind: 'client'; readonly id: string }
  /** Opened by the platform, for a client that sends no session id. */
  | { readonly kind: 'platform'; readonly session: PlatformSession }
  /** The message needs no session: it is `initialize`, or stateless. */
  | { readonly kind: 'none' }

interface Parts extends ProxyOptions {
  readonly takeSlot: TakeSlot
  readonly post: Post
}

/**
 * Sends the message, and resolves with the client's response. Throws PlatformError: `rate_limited`,
 * `session_not_found`, `upstream_unauthorized`, `upstream_error` or `upstream_timeout`, each with the id of the message.
 */
export type SendUpstream = (call: UpstreamCall) => Promise<Response>

/** One proxy serves all connections; it holds the call slots. */
export function createProxy(options: ProxyOptions): SendUpstream {
  const parts = { ...options, takeSlot: createCallSlots(), post: createPost(options.upstream, options.timeoutMs) }
  return (call) => send(parts, call)
}

async function send(parts: Parts, call: UpstreamCall): Promise<Response> {
  const { sessions, fairness, takeSlot } = parts
  let leaveSlot: (() => void) | undefined
  /** True once the response outlives this call; then its end releases the slot. */
  let isSlotKept = false
  const keepSlot = () => {
    isSlotKept = true
    const letGo = call.allowance.hold()
    return () => {
      leaveSlot?.()
      letGo()
    }
  }
  try {
    leaveSlot = takeSlot(call)
    const found = resolveSession(parts, call)
    const session = found instanceof Promise ? await found : found
    const received = await sendWithRetry(parts, call, session)
    // Before clientResponse(): once that has begun a stream, throwing here would leak its slot.
    const sessionId = clientSessionId(sessions, call, session, received)
    const hasClientSession = session.kind === 'client'
    const answering = clientResponse(received, call, { memory: fairness.memory, hasClientSession, keepSlot })
    const response = answering instanceof Promise ? await answering : answering
    const { 'mcp-protocol-version': protocolVersion } = received.headers
    if (protocolVersion !== undefined) response.headers.set('mcp-protocol-version', protocolVersion)
    if (sessionId !== undefined) response.headers.set('mcp-session-id', sessionId)
    const { isScopeWanted, connection } = call
    if (connection.status.state !== 'connected' && response.ok && !isScopeWanted) {
      call.onStatus({ state: 'connected' })
    }
    return response
  } catch (thrown) {
    throw upstreamFailure(thrown, call)
  } finally {
    if (!isSlotKept) {
      leaveSlot?.()
      call.restoreIdleTimeout()
    }
  }
}

function platformSession(parts: Parts, call: UpstreamCall): Promise<PlatformSession> | PlatformSession {
  const { sessions, fairness, post } = parts
  return sessions.platform(call.holder.keyId, call.sessionOwner, () => openPlatformSession(call, post, fairness.turns))
}

/**
 * The session to send the message in. May open one, which asks the upstream first. Throws `session_not_found` for a
 * session that was sealed here and is no longer valid. An id that was never sealed here is ignored.
 */
function resolveSession(parts: Parts, call: UpstreamCall): Promise<Session> | Session {
  const { sessions } = parts
  const { message, headers, sessionOwner } = call
  const given = headers.get('mcp-session-id')
  const opened = given === null ? 'foreign' : sessions.unseal(sessionOwner, given)
  if (opened === 'expired' && message.method !== 'initialize') throw sessionExpired(message)
  if (typeof opened === 'object') return { kind: 'client', id: opened.id }
  if (message.era === 'stateless' || message.method === 'initialize') return { kind: 'none' }
  const session = platformSession(parts, call)
  const asPlatform = (opened: PlatformSession) => ({ kind: 'platform', session: opened }) as const
  return session instanceof Promise ? session.then(asPlatform) : asPlatform(session)
}

/**
 * Sends the message. If the upstream no longer knows the platform session (404), opens a new one and sends again. A
 * `tools/call` is not repeated: the 404 does not prove that nothing was executed, so the caller must decide.
 */
async function sendWithRetry(parts: Parts, call: UpstreamCall, session: Session): Promise<UpstreamResponse> {
  const { sessions, post } = parts
  const response = await post(call, call.message.bytes, sessionHeaders(call, session))
  if (response.status !== 404 || session.kind !== 'platform' || session.session.id === null) return response
  const { message, holder, sessionOwner } = call
  sessions.forget(holder.keyId, sessionOwner, session.session)
  const renewed = await platformSession(parts, call)
  if (message.method === 'tools/call') {
    throw unusableUpstream('had ended the session. A new one is open: call again', message)
  }
  return post(call, message.bytes, sessionHeaders(call, { kind: 'platform', session: renewed }))
}

/** The client's own `MCP-Protocol-Version`, if sent, takes precedence over that of the platform session. */
function sessionHeaders({ headers }: UpstreamCall, session: Session): Record<string, string> {
  if (session.kind === 'none') return {}
  if (session.kind === 'client') return { 'mcp-session-id': session.id }
  const { id, protocolVersion } = session.session
  return {
    ...(id !== null && { 'mcp-session-id': id }),
    ...(!headers.has('mcp-protocol-version') && { 'mcp-protocol-version': protocolVersion }),
  }
}

/**
 * The session id that the client gets: newly sealed after `initialize`, otherwise the one that it sent. Discards the
 * upstream's response and throws `upstream_error` if its id is too long to seal.
 */
function clientSessionId(
  sessions: Sessions,
  { message, headers, sessionOwner }: UpstreamCall,
  session: Session,
  received: UpstreamResponse,
): string | undefined {
  if (session.kind === 'client') return headers.get('mcp-session-id') ?? undefined
  const { 'mcp-session-id': id } = received.headers
  if (message.method !== 'initialize' || id === undefined || received.status >= 300) return undefined
  const sealed = sessions.seal(sessionOwner, id)
  if (sealed !== undefined) return sealed
  discardBody(received)
  throw unusableUpstream('has a session id that is too long', message)
}
