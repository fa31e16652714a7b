/**
 * Sends one message to a connection's upstream, within a session if one is needed, and returns the client's response.
 * The bytes that the policy was evaluated on are the bytes sent. A request is retried only if a platform session was
 * unknown (404) or missing (400), and a `tools/call` never.
 */

import type { Upstream, UpstreamResponse } from '../../upstream/upstream.ts'
import { createCallSlots } from './call-slots.ts'
import { clientResponse } from './client-response.ts'
import { discardBody, openPlatformSession } from './platform-session.ts'
import { createPost, type Post } from './send-with-credentials.ts'
import type { PlatformSession, Sessions } from './sessions.ts'
import { sessionExpired, type UpstreamCall, unusableUpstream, upstreamFailure } from './upstream-call.ts'

/**
 * The session in which a message is sent: one of the platform, or one that the client opened, by the id that the
 * upstream gave it. Undefined for a message that needs none: it is `initialize`, or stateless.
 */
type Session = PlatformSession | { readonly id: string; readonly isOfClient: true } | undefined

const isOfClient = (session: Session) => session !== undefined && 'isOfClient' in session

/**
 * Sends the message, and resolves with the client's response. Throws PlatformError: `rate_limited`,
 * `session_not_found`, `upstream_unauthorized`, `upstream_error` or `upstream_timeout`, each with the id of the
 * message.
 */
export type SendUpstream = (call: UpstreamCall) => Promise<Response>

/** One proxy serves all connections; it holds the call slots. `timeoutMs`: until the head of a response has arrived. */
export function createProxy(upstream: Upstream, sessions: Sessions, timeoutMs: number): SendUpstream {
  const takeSlot = createCallSlots()
  const post = createPost(upstream, timeoutMs)
  return async (call) => {
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
      const found = resolveSession(sessions, post, call)
      const session = found instanceof Promise ? await found : found
      call.progress.sessionId = session?.id ?? undefined
      const first = await post(call, call.message.bytes, sessionHeaders(call, session))
      const again = isUnknownSession(session, first) ? await sendAgain(sessions, post, call, session) : undefined
      const received = again ?? first
      // Before clientResponse(): once that has begun a stream, throwing here would leak its slot.
      const sessionId = clientSessionId(sessions, call, session, received)
      const answering = clientResponse(received, call, { hasClientSession: isOfClient(session), keepSlot })
      const response = answering instanceof Promise ? await answering : answering
      setHeaders(response.headers, received.headers['mcp-protocol-version'], sessionId)
      if (response.ok) noteConnected(call)
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
}

function platformSession(sessions: Sessions, post: Post, call: UpstreamCall) {
  return sessions.platform(call.holder.keyId, call.sessionOwner, () => openPlatformSession(call, post))
}

/**
 * Whether the upstream no longer knows the platform session (404). One that had no sessions may have been restarted
 * with them: then it answers 400 (MCP, session management).
 */
function isUnknownSession(session: Session, { status }: UpstreamResponse): session is PlatformSession {
  return session !== undefined && !isOfClient(session) && status === (session.id === null ? 400 : 404)
}

/**
 * Opens a new session, and sends the message in it; not a `tools/call`, which may have been executed. Undefined if the
 * upstream has no sessions, so that the first response counts.
 */
async function sendAgain(sessions: Sessions, post: Post, call: UpstreamCall, former: PlatformSession) {
  const { message, holder, sessionOwner } = call
  const hadNone = former.id === null
  sessions.forget(holder.keyId, sessionOwner, former)
  const renewed = await platformSession(sessions, post, call)
  if (hadNone && renewed.id === null) return undefined
  if (message.method === 'tools/call') {
    const why = hadNone
      ? 'wants a session, and postern has opened one'
      : 'had ended the session, and postern has opened a new one'
    throw unusableUpstream(`${why}: call again`, message)
  }
  return post(call, message.bytes, sessionHeaders(call, renewed))
}

/**
 * The session to send the message in. May open one, which asks the upstream first. Throws `session_not_found` for a
 * session that was sealed here and is no longer valid. An id that was never sealed here is ignored.
 */
function resolveSession(sessions: Sessions, post: Post, call: UpstreamCall): Promise<Session> | Session {
  const { message, headers, sessionOwner } = call
  const given = headers.get('mcp-session-id')
  const opened = given === null ? 'foreign' : sessions.unseal(sessionOwner, given)
  if (opened === 'expired' && message.method !== 'initialize') throw sessionExpired(message)
  if (typeof opened === 'object') return { id: opened.id, isOfClient: true }
  if (message.era === 'stateless' || message.method === 'initialize') return undefined
  return platformSession(sessions, post, call)
}

function setHeaders(headers: Headers, protocolVersion: string | undefined, sessionId: string | undefined): void {
  if (protocolVersion !== undefined) headers.set('mcp-protocol-version', protocolVersion)
  if (sessionId !== undefined) headers.set('mcp-session-id', sessionId)
}

/** A server that wants more scopes than its token has leaves the connection `auth_required`. */
function noteConnected(call: UpstreamCall): void {
  const { connection, privatePart } = call.connection.stored
  const isWorking = privatePart.wantedScope === undefined
  if (isWorking && connection.status.state !== 'connected') call.onStatus({ state: 'connected' })
}

/** The client's own `MCP-Protocol-Version`, if sent, takes precedence over that of the platform session. */
function sessionHeaders({ headers }: UpstreamCall, session: Session): Record<string, string> {
  if (session === undefined) return {}
  if ('isOfClient' in session) return { 'mcp-session-id': session.id }
  const { id, protocolVersion } = session
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
  if (isOfClient(session)) return headers.get('mcp-session-id') ?? undefined
  const { 'mcp-session-id': id } = received.headers
  if (message.method !== 'initialize' || id === undefined || received.status >= 300) return undefined
  const sealed = sessions.seal(sessionOwner, id)
  if (sealed !== undefined) return sealed
  discardBody(received)
  throw unusableUpstream('has a session id that is too long', message)
}
