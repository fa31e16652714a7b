/**
 * One message to the upstream of a connection, and its response back. The bytes that were checked are the bytes that
 * are sent. A request is sent again only after a 404 for an unknown session, and a `tools/call` never.
 */

import type { ConnectionRef } from '../../auth/authorize.ts'
import { PlatformError } from '../../errors.ts'
import type { Shares } from '../../http/shares.ts'
import type { Turns } from '../../http/turns.ts'
import type { ConnectionStatus } from '../../model/connection.ts'
import { type Upstream, UpstreamError, type UpstreamResponse } from '../../upstream/upstream.ts'
import { createCallSlots } from './call-slots.ts'
import { clientResponse } from './client-response.ts'
import { forwardedHeaders } from './forwarded-headers.ts'
import { openOwnSession, type Post } from './own-session.ts'
import type { OwnSession, Sessions } from './sessions.ts'
import { sessionExpired, tooMany, type UpstreamCall, unusableUpstream } from './upstream-call.ts'

export interface UpstreamProxy {
  /** The upstream's response, as the client gets it. Throws PlatformError. */
  send(call: UpstreamCall): Promise<Response>
}

export interface ProxyOptions {
  readonly upstream: Upstream
  readonly sessions: Sessions
  /** Bytes of responses that were not read yet. */
  readonly memory: Shares
  readonly turns: Turns
  /** Milliseconds to the head of a response. */
  readonly timeoutMs: number
  /** Told what the traffic says of a connection. */
  readonly onStatus: (ref: ConnectionRef, status: ConnectionStatus) => void
}

/** The session that a message is sent in. */
type Session =
  /** The client's own; the upstream's id of it. */
  | { readonly kind: 'client'; readonly id: string }
  /** The platform's, for a client that has none. */
  | { readonly kind: 'own'; readonly session: OwnSession }
  /** It needs none. */
  | { readonly kind: 'none' }

export function createProxy({ upstream, sessions, memory, turns, timeoutMs, onStatus }: ProxyOptions): UpstreamProxy {
  const slots = createCallSlots()

  const post: Post = (call, body, more) => {
    const { connection, holder, signal, via } = call
    return upstream.send({
      url: connection.mcpUrl ?? '',
      headers: forwardedHeaders(call, more),
      body,
      timeoutMs,
      holder,
      via,
      ...(signal !== undefined && { signal }),
    })
  }

  function ownSession(call: UpstreamCall): Promise<OwnSession> {
    return sessions.own(call.holder.keyId, call.sessionKey, () => openOwnSession(call, post, turns))
  }

  /** Throws `session_not_found`. */
  async function sessionOf(call: UpstreamCall): Promise<Session> {
    const { message, headers, sessionKey } = call
    const given = headers.get('mcp-session-id')
    const opened = given === null ? 'foreign' : sessions.open(sessionKey, given)
    if (opened === 'expired' && message.method !== 'initialize') throw sessionExpired(message)
    if (typeof opened === 'object') return { kind: 'client', id: opened.id }
    if (message.era === 'stateless' || message.method === 'initialize') return { kind: 'none' }
    return { kind: 'own', session: await ownSession(call) }
  }

  /** In the platform's own session again, where the upstream has forgotten it. */
  async function sendWithRetry(call: UpstreamCall, session: Session): Promise<UpstreamResponse> {
    const response = await post(call, call.message.bytes, sessionHeaders(call, session))
    if (response.status !== 404 || session.kind !== 'own' || session.session.id === null) return response
    const { message, holder, sessionKey } = call
    sessions.forget(holder.keyId, sessionKey, session.session)
    const renewed = await ownSession(call)
    if (message.method === 'tools/call') {
      throw unusableUpstream('had ended the session. A new one is open: call again', message)
    }
    return post(call, message.bytes, sessionHeaders(call, { kind: 'own', session: renewed }))
  }

  return {
    async send(call) {
      const release = slots.acquire(call)
      let isHeld = false
      try {
        const session = await sessionOf(call)
        const received = await sendWithRetry(call, session)
        const response = await clientResponse(received, call, {
          memory,
          onStatus: (status) => onStatus(call.ref, status),
          hasClientSession: session.kind === 'client',
          onEnd: release,
          onHeld() {
            isHeld = true
          },
        })
        const { 'mcp-protocol-version': protocolVersion } = received.headers
        if (protocolVersion !== undefined) response.headers.set('mcp-protocol-version', protocolVersion)
        nameSession(sessions, call, session, received, response)
        if (call.connection.status.state !== 'connected' && response.ok) onStatus(call.ref, { state: 'connected' })
        return response
      } catch (thrown) {
        throw errorFor(thrown, call, onStatus)
      } finally {
        if (!isHeld) {
          release()
          call.onResponse()
        }
      }
    },
  }
}

function sessionHeaders({ headers }: UpstreamCall, session: Session): Record<string, string> {
  if (session.kind === 'none') return {}
  if (session.kind === 'client') return { 'mcp-session-id': session.id }
  const { id, protocolVersion } = session.session
  return {
    ...(id !== null && { 'mcp-session-id': id }),
    ...(!headers.has('mcp-protocol-version') && { 'mcp-protocol-version': protocolVersion }),
  }
}

/** The session that the client goes on with, in the headers of its response. Throws `upstream_error`. */
function nameSession(
  sessions: Sessions,
  { message, headers, sessionKey }: UpstreamCall,
  session: Session,
  from: UpstreamResponse,
  to: Response,
): void {
  if (message.method === 'initialize') {
    const { 'mcp-session-id': id } = from.headers
    const sealed = id === undefined ? undefined : sessions.seal(sessionKey, id)
    if (id !== undefined && sealed === undefined) {
      throw unusableUpstream('has a session id that is too long', message)
    }
    if (sealed !== undefined) to.headers.set('mcp-session-id', sealed)
  } else if (session.kind === 'client') to.headers.set('mcp-session-id', headers.get('mcp-session-id') ?? '')
}

/** As an answer to this message: several may have waited for one session, and got one error. */
function errorFor(thrown: unknown, { message, ref }: UpstreamCall, onStatus: ProxyOptions['onStatus']): unknown {
  if (thrown instanceof PlatformError) return thrown.withId(message.id)
  if (!(thrown instanceof UpstreamError)) return thrown
  const { kind, message: what } = thrown
  const { id } = message
  // What a client did says nothing of the server.
  if (kind === 'gone') return new PlatformError('upstream_error', 'The client disconnected', { id })
  if (kind === 'busy') return tooMany(`The upstream’s response was not read: ${what}`, message)
  if (kind === 'late') return new PlatformError('upstream_timeout', `The upstream: ${what}`, { id })
  onStatus(ref, { state: 'error', message: `The server could not be reached: ${what}` })
  return new PlatformError('upstream_error', `The upstream cannot be reached: ${what}`, { id })
}
