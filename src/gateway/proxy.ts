/**
 * One message to the upstream of a connection, and its answer back. The bytes that were checked are the bytes that
 * go; of the caller's headers only those of MCP do, and the connection's own win. Nothing is sent a second time but
 * where the upstream said that it did not know the session, and a call never.
 */

import type { Place } from '../access/namespace.ts'
import { isJson } from '../http/body.ts'
import { freshJson } from '../http/respond.ts'
import { callsAtOnceMax } from '../limits.ts'
import type { Connection, ConnectionStatus } from '../model/connection.ts'
import { asBuffer } from '../storage/store.ts'
import { asResponse, type Upstream, type UpstreamAnswer, UpstreamError } from '../upstream/upstream.ts'
import { version } from '../version.ts'
import type { Message } from './message.ts'
import { RpcError } from './rpc-error.ts'
import type { KeptSession, Sessions } from './sessions.ts'
import { messagesOf, type Rewrite, rewriteEvents, streamed } from './stream.ts'

export interface Call {
  readonly place: Place
  readonly connection: Connection
  /** The connection's own, in the clear. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** Whom a session belongs to: the token or key, and the connection as it is pointed. */
  readonly owner: string
  readonly message: Message
  /** The caller's. */
  readonly headers: Headers
  /** Tells that the caller has gone; undefined for what is asked for nobody in particular. */
  readonly signal: (() => AbortSignal) | undefined
  /** Looks at each message of the answer, where something must be left out. */
  readonly rewrite: Rewrite | undefined
}

export interface UpstreamProxy {
  /** The upstream's answer, as the client gets it. Throws RpcError. */
  send(call: Call): Promise<Response>
}

export interface ProxyOptions {
  readonly upstream: Upstream
  readonly sessions: Sessions
  /** Milliseconds to the head of an answer. */
  readonly patience: number
  /** Told what the traffic says of a connection. */
  readonly onState: (place: Place, state: ConnectionStatus) => void
}

/** Made once: a response copies them. */
const jsonHeaders = new Headers(freshJson)
const freshHeaders = new Headers({ 'cache-control': 'no-store' })
const streamHeaders = new Headers({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' })

const handshakeVersion = '2025-11-25'
/** Dates, so far. */
const revisionCharsMax = 32

export function createProxy({ upstream, sessions, patience, onState }: ProxyOptions): UpstreamProxy {
  /** Requests under way, by connection. */
  const underWay = new Map<string, number>()

  function enter({ namespace, connectionId }: Place, id: Message['id']): () => void {
    const name = `${namespace}/${connectionId}`
    const count = underWay.get(name) ?? 0
    if (count >= callsAtOnceMax) {
      throw new RpcError('too_many', `More than ${callsAtOnceMax} requests are under way through this connection`, {
        id,
        headers: { 'retry-after': '1' },
      })
    }
    underWay.set(name, count + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (underWay.get(name) ?? 1) - 1
      if (left === 0) underWay.delete(name)
      else underWay.set(name, left)
    }
  }

  /** Rejects with UpstreamError. */
  function post(
    call: Call,
    body: Uint8Array | string,
    more: Readonly<Record<string, string>>,
  ): Promise<UpstreamAnswer> {
    const { connection, ownHeaders, headers, message, signal } = call
    const sent: Record<string, string> = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    headers.forEach((value, name) => {
      if (goesOn(name, message.era)) sent[name] = value
    })
    Object.assign(sent, more)
    for (const [name, value] of Object.entries(ownHeaders)) sent[name.toLowerCase()] = value
    return upstream.send({
      url: connection.mcpUrl ?? '',
      headers: sent,
      body,
      patience,
      ...(signal !== undefined && { signal }),
    })
  }

  /** In the words of JSON-RPC, and to this message: several may have waited for one session, and got one error. */
  function answering(thrown: unknown, { message: { id }, place }: Call): unknown {
    if (thrown instanceof RpcError) {
      const { kind, message, data, headers } = thrown
      return thrown.id === id ? thrown : new RpcError(kind, message, { id, data, headers })
    }
    if (!(thrown instanceof UpstreamError)) return thrown
    const { kind, message } = thrown
    // What a client did says nothing of the server.
    if (kind === 'gone') return new RpcError('upstream_down', 'Whoever asked has gone', { id })
    if (kind === 'late') return new RpcError('upstream_late', `The upstream: ${message}`, { id })
    onState(place, { state: 'error', message: `The server could not be reached: ${message}` })
    return new RpcError('upstream_down', `The upstream cannot be reached: ${message}`, { id })
  }

  /** Opens a session of the platform's own, for a client that has none. */
  async function open(call: Call): Promise<KeptSession> {
    const params = { protocolVersion: handshakeVersion, capabilities: {}, clientInfo: { name: 'postern', version } }
    const initialize = { jsonrpc: '2.0', id: 'postern', method: 'initialize', params }
    // The client's own words about the protocol are about its own request, and others may wait for this session too.
    const own = { ...call, headers: new Headers(), signal: undefined }
    const answer = await post(own, JSON.stringify(initialize), {})
    const { 'mcp-session-id': id } = answer.headers
    const isWelcome = answer.status < 300
    let protocolVersion = handshakeVersion
    if (isWelcome) {
      await messagesOf(asResponse(answer), call.message.id, (message) => {
        const { result } = (message ?? {}) as { result?: { protocolVersion?: unknown } | null }
        const { protocolVersion: spoken } = result ?? {}
        if (typeof spoken === 'string' && spoken.length <= revisionCharsMax) protocolVersion = spoken
        return result !== undefined
      })
    }
    // One that needs no greeting, or knows another: it is asked without, and says itself what is wrong.
    if (!isWelcome || id === undefined) return { id: null, protocolVersion }
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
    const done = await post(own, JSON.stringify(initialized), {
      'mcp-session-id': id,
      'mcp-protocol-version': protocolVersion,
    })
    drop(done)
    return { id, protocolVersion }
  }

  function sendOnce(call: Call, session: KeptSession | string | undefined): Promise<UpstreamAnswer> {
    if (session === undefined) return post(call, call.message.bytes, {})
    if (typeof session === 'string') return post(call, call.message.bytes, { 'mcp-session-id': session })
    const { id, protocolVersion } = session
    const more: Record<string, string> = {}
    if (id !== null) more['mcp-session-id'] = id
    if (!call.headers.has('mcp-protocol-version')) more['mcp-protocol-version'] = protocolVersion
    return post(call, call.message.bytes, more)
  }

  return {
    async send(call) {
      const { message, owner, place, connection } = call
      const leave = enter(place, message.id)
      let isStreaming = false
      try {
        const given = call.headers.get('mcp-session-id')
        const own = given !== null && sessions.has(owner, given) ? given : undefined
        const needsNone = message.era === 'stateless' || message.method === 'initialize' || own !== undefined
        let kept = needsNone ? undefined : await sessions.kept(owner, () => open(call))
        let answer = await sendOnce(call, own ?? kept)
        if (answer.status === 404 && kept !== undefined && kept.id !== null) {
          sessions.drop(owner, kept)
          kept = await sessions.kept(owner, () => open(call))
          if (message.method === 'tools/call') {
            throw new RpcError('upstream_down', 'The upstream’s session was over, and a new one is open: call again', {
              id: message.id,
            })
          }
          answer = await sendOnce(call, kept)
        }
        const response = await answered(answer, call, {
          hasOwnSession: own !== undefined,
          onEnd: leave,
          onStream: () => {
            isStreaming = true
          },
        })
        const { 'mcp-protocol-version': protocolVersion } = answer.headers
        if (protocolVersion !== undefined) response.headers.set('mcp-protocol-version', protocolVersion)
        if (message.method === 'initialize') {
          const { 'mcp-session-id': sessionId } = answer.headers
          if (sessionId !== undefined) {
            sessions.add(owner, sessionId)
            response.headers.set('mcp-session-id', sessionId)
          }
        } else if (own !== undefined) response.headers.set('mcp-session-id', own)
        if (connection.status.state !== 'connected' && response.ok) onState(place, { state: 'connected' })
        return response
      } catch (thrown) {
        throw answering(thrown, call)
      } finally {
        if (!isStreaming) leave()
      }
    },
  }

  interface Answering {
    readonly hasOwnSession: boolean
    readonly onEnd: () => void
    readonly onStream: () => void
  }

  /** What the client gets. Throws RpcError. */
  async function answered(
    answer: UpstreamAnswer,
    { message, connection, place, rewrite }: Call,
    { hasOwnSession, onEnd, onStream }: Answering,
  ): Promise<Response> {
    const { id } = message
    const { status, headers: given, body } = answer
    const { 'content-type': type, 'content-encoding': encoding = 'identity' } = given
    const unusable = (what: string) => new RpcError('upstream_down', `The upstream ${what}`, { id })
    if (status === 401) {
      onState(place, { ...('authorizationUrl' in connection.status && connection.status), state: 'auth_required' })
      const { authorizationUrl } = connection.status as { authorizationUrl?: string }
      throw new RpcError('upstream_unauthorized', 'The upstream wants authorization', {
        id,
        ...(authorizationUrl !== undefined && { data: { authorizationUrl } }),
      })
    }
    if (encoding !== 'identity') throw unusable('compressed its answer, which nobody asked for')
    if (status >= 300 && status < 400) throw unusable(`answered with a redirect (${status}), which is not followed`)
    if (status >= 500) throw unusable(`answered ${status}`)
    if (status === 202 || status === 204) {
      drop(answer)
      return new Response(null, { status: 202, headers: freshHeaders })
    }
    if (body instanceof ReadableStream) {
      onStream()
      return new Response(streamed(body, { onEnd, ...(rewrite && { rewrite: rewriteEvents(rewrite, id) }) }), {
        headers: streamHeaders,
      })
    }
    const bytes = body ?? new Uint8Array(0)
    if (status >= 400) {
      const error = isJson(type) ? rpcErrorIn(asBuffer(bytes).toString()) : undefined
      if (error !== undefined) return new Response(error, { status, headers: jsonHeaders })
      if (status === 404 && hasOwnSession) {
        throw new RpcError('no_session', 'The session is over: initialize again', { id })
      }
      throw new RpcError('upstream_down', `The upstream answered ${status} and no JSON-RPC`, { id })
    }
    if (!isJson(type)) throw unusable('does not speak MCP')
    try {
      const text = await rewrite?.(asBuffer(bytes).toString())
      // A list of answers is none: nobody asked for several.
      if (text === undefined && !startsAsObject(bytes)) throw new SyntaxError('not an object')
      return new Response(text ?? bytes, { headers: jsonHeaders })
    } catch (error) {
      if (error instanceof SyntaxError) throw new RpcError('upstream_down', 'The upstream does not speak MCP', { id })
      throw error
    }
  }
}

/** Nobody reads it. */
function drop({ body }: UpstreamAnswer): void {
  if (body instanceof ReadableStream) void body.cancel().catch(() => {})
}

/** The error of an answer, and nothing that came beside it; undefined where there is none. */
function rpcErrorIn(text: string): string | undefined {
  try {
    const message = JSON.parse(text) as { jsonrpc?: unknown; id?: unknown; error?: unknown } | null
    if (message?.jsonrpc !== '2.0' || typeof message.error !== 'object' || message.error === null) return undefined
    return JSON.stringify({ jsonrpc: '2.0', id: message.id ?? null, error: message.error })
  } catch {
    return undefined
  }
}

/**
 * Of the caller's headers only those of MCP go on. What repeats the body does in the revision that has it, where it was
 * held to the body; in the other a server may still believe it.
 */
function goesOn(name: string, era: Message['era']): boolean {
  if (name === 'last-event-id') return true
  if (!name.startsWith('mcp-') || name === 'mcp-session-id') return false
  return era === 'stateless' || !(name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-'))
}

/** Without reading it all: it is passed on as it is. */
function startsAsObject(bytes: Uint8Array): boolean {
  const first = bytes.findIndex((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)
  return first >= 0 && bytes[first] === 0x7b
}
