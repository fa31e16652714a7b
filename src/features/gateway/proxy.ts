/**
 * One message to the upstream of a connection, and its answer back. The bytes that were checked are the bytes that
 * go; of the caller's headers only those of MCP do, and the connection's own win. Nothing is sent a second time but
 * where the upstream said that it did not know the session, and a call never.
 */

import type { ConnectionRef } from '../../auth/authorize.ts'
import { PlatformError } from '../../errors.ts'
import { isJson } from '../../http/body.ts'
import { rpcErrorText } from '../../http/error-response.ts'
import { eventStream, freshJson } from '../../http/respond.ts'
import { createShares, type Holder, type Shares } from '../../http/shares.ts'
import type { Turns } from '../../http/turns.ts'
import { answerAtOnceBytesMax, callsAtOnceMax } from '../../limits.ts'
import type { Connection, ConnectionStatus } from '../../model/connection.ts'
import { asBuffer } from '../../storage/store.ts'
import { asResponse, type Upstream, type UpstreamAnswer, UpstreamError } from '../../upstream/upstream.ts'
import { version } from '../../version.ts'
import { readAnswer, readingAnswer } from './filter-tools.ts'
import type { Message } from './message.ts'
import type { KeptSession, Sessions } from './sessions.ts'
import { eventOf, inPieces, messagesOf, type Rewrite, rewriteEvents, streamed } from './stream.ts'

export interface Call {
  readonly place: ConnectionRef
  readonly connection: Connection
  /** The connection's own, in the clear. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** Whom a session belongs to: the token or key, and the connection as it is pointed. */
  readonly owner: string
  /** Whose share of places and memory it takes. */
  readonly holder: Holder
  readonly message: Message
  /** The caller's. */
  readonly headers: Headers
  /** The intermediaries that the request came through (RFC 9110, 7.6.3). */
  readonly via: string | undefined
  /** Tells that the client disconnected; undefined for what is asked for nobody in particular. */
  readonly signal: (() => AbortSignal) | undefined
  /** Looks at each message of the answer, where something must be left out. */
  readonly rewrite: Rewrite | undefined
  /** Gives what ends an open stream, when its credential or connection has ended, until what it gives is called. */
  readonly watch: (end: (why: PlatformError) => void) => () => void
  /** Called when nothing more is waited for but that the client reads on. */
  readonly onAnswered: () => void
}

export interface UpstreamProxy {
  /** The upstream's answer, as the client gets it. Throws PlatformError. */
  send(call: Call): Promise<Response>
}

export interface ProxyOptions {
  readonly upstream: Upstream
  readonly sessions: Sessions
  /** Bytes of answers that were not read yet. */
  readonly memory: Shares
  readonly turns: Turns
  /** Milliseconds to the head of an answer. */
  readonly patience: number
  /** Told what the traffic says of a connection. */
  readonly onState: (place: ConnectionRef, state: ConnectionStatus) => void
}

/** Made once: a response copies them. */
const jsonHeaders = new Headers(freshJson)
const freshHeaders = new Headers({ 'cache-control': 'no-store' })
const streamHeaders = new Headers(eventStream)

const handshakeVersion = '2025-11-25'
/** Dates, so far. */
const revisionCharsMax = 32

export function createProxy({ upstream, sessions, memory, turns, patience, onState }: ProxyOptions): UpstreamProxy {
  /** Requests under way, by connection. */
  const underWay = new Map<string, { readonly places: Shares; taken: number }>()

  /** Takes a place, and gives what gives it back. Throws PlatformError `rate_limited`. */
  function enter({ place: { namespace, connectionId }, holder, message }: Call): () => void {
    const name = `${namespace}/${connectionId}`
    const one = underWay.get(name) ?? { places: createShares(callsAtOnceMax), taken: 0 }
    if (!one.places.take(holder, 1))
      throw tooMany('This caller has too many requests under way through this connection', message)
    one.taken += 1
    underWay.set(name, one)
    return once(() => {
      one.places.giveBack(holder, 1)
      one.taken -= 1
      if (one.taken === 0) underWay.delete(name)
    })
  }

  /** Rejects with UpstreamError. */
  function post(
    call: Call,
    body: Uint8Array | string,
    more: Readonly<Record<string, string>>,
  ): Promise<UpstreamAnswer> {
    const { connection, ownHeaders, headers, message, holder, signal, via } = call
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
      holder,
      via,
      ...(signal !== undefined && { signal }),
    })
  }

  /** In the words of JSON-RPC, and to this message: several may have waited for one session, and got one error. */
  function answering(thrown: unknown, { message: { id }, place }: Call): unknown {
    if (thrown instanceof PlatformError) return thrown.withId(id)
    if (!(thrown instanceof UpstreamError)) return thrown
    const { kind, message } = thrown
    // What a client did says nothing of the server.
    if (kind === 'gone') return new PlatformError('upstream_error', 'The client disconnected', { id })
    if (kind === 'busy') return tooMany(`The upstream was not heard out: ${message}`, { id })
    if (kind === 'late') return new PlatformError('upstream_timeout', `The upstream: ${message}`, { id })
    onState(place, { state: 'error', message: `The server could not be reached: ${message}` })
    return new PlatformError('upstream_error', `The upstream cannot be reached: ${message}`, { id })
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
      await messagesOf(
        asResponse(answer),
        call.message.id,
        (message) => {
          const { result } = (message ?? {}) as { result?: { protocolVersion?: unknown } | null }
          const { protocolVersion: spoken } = result ?? {}
          if (typeof spoken === 'string' && spoken.length <= revisionCharsMax) protocolVersion = spoken
          return result !== undefined
        },
        (text) => turns.run(call.holder, readingAnswer(text)),
      )
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
      const { message, owner, holder, place, connection } = call
      const leave = enter(call)
      let isHeld = false
      try {
        const given = call.headers.get('mcp-session-id')
        const opened = given === null ? 'foreign' : sessions.open(owner, given)
        if (opened === 'over' && message.method !== 'initialize') throw sessionOver(message)
        const own = typeof opened === 'object' ? opened.id : undefined
        const needsNone = message.era === 'stateless' || message.method === 'initialize' || own !== undefined
        let kept = needsNone ? undefined : await sessions.kept(holder.keyId, owner, () => open(call))
        let answer = await sendOnce(call, own ?? kept)
        if (answer.status === 404 && kept !== undefined && kept.id !== null) {
          sessions.drop(holder.keyId, owner, kept)
          kept = await sessions.kept(holder.keyId, owner, () => open(call))
          if (message.method === 'tools/call') {
            throw new PlatformError(
              'upstream_error',
              'The upstream’s session was over, and a new one is open: call again',
              {
                id: message.id,
              },
            )
          }
          answer = await sendOnce(call, kept)
        }
        const response = await answered(answer, call, {
          hasOwnSession: own !== undefined,
          onEnd: leave,
          onHeld: () => {
            isHeld = true
          },
        })
        const { 'mcp-protocol-version': protocolVersion } = answer.headers
        if (protocolVersion !== undefined) response.headers.set('mcp-protocol-version', protocolVersion)
        if (message.method === 'initialize') {
          const { 'mcp-session-id': sessionId } = answer.headers
          const sealed = sessionId === undefined ? undefined : sessions.sealed(owner, sessionId)
          if (sessionId !== undefined && sealed === undefined)
            throw unusable('calls its session by a name that is too long', message)
          if (sealed !== undefined) response.headers.set('mcp-session-id', sealed)
        } else if (own !== undefined && given !== null) response.headers.set('mcp-session-id', given)
        if (connection.status.state !== 'connected' && response.ok) onState(place, { state: 'connected' })
        return response
      } catch (thrown) {
        throw answering(thrown, call)
      } finally {
        if (!isHeld) {
          leave()
          call.onAnswered()
        }
      }
    },
  }

  interface Answering {
    readonly hasOwnSession: boolean
    /** Called once the client has read the answer, or left. */
    readonly onEnd: () => void
    /** Called where that is later than now. */
    readonly onHeld: () => void
  }

  /** What the client gets. Throws PlatformError. */
  async function answered(
    answer: UpstreamAnswer,
    { message, connection, place, rewrite, holder, watch, onAnswered }: Call,
    { hasOwnSession, onEnd, onHeld }: Answering,
  ): Promise<Response> {
    const { id } = message
    const { status, headers: given, body } = answer
    const { 'content-type': type, 'content-encoding': encoding = 'identity' } = given
    if (status === 401) {
      onState(place, { ...('authorizationUrl' in connection.status && connection.status), state: 'auth_required' })
      const { authorizationUrl } = connection.status as { authorizationUrl?: string }
      throw new PlatformError('upstream_unauthorized', 'The upstream wants authorization', {
        id,
        ...(authorizationUrl !== undefined && { data: { authorizationUrl } }),
      })
    }
    if (encoding !== 'identity') throw unusable('compressed its answer, which nobody asked for', message)
    if (status >= 300 && status < 400)
      throw unusable(`answered with a redirect (${status}), which is not followed`, message)
    if (status >= 500) throw unusable(`answered ${status}`, message)
    if (status === 202 || status === 204) {
      drop(answer)
      return new Response(null, { status: 202, headers: freshHeaders })
    }
    if (body instanceof ReadableStream) {
      onHeld()
      const over = () => {
        onEnd()
        onAnswered()
      }
      const watched = (end: (lastWords: string) => void) => watch((why) => end(`\n\n${eventOf(rpcErrorText(why, id))}`))
      return new Response(
        streamed(body, { onEnd: over, watch: watched, ...(rewrite && { rewrite: rewriteEvents(rewrite, id) }) }),
        {
          headers: streamHeaders,
        },
      )
    }
    const bytes = body ?? new Uint8Array(0)
    if (status >= 400) {
      const error = isJson(type) ? rpcErrorIn(asBuffer(bytes).toString()) : undefined
      if (error !== undefined) return new Response(error, { status, headers: jsonHeaders })
      if (status === 404 && hasOwnSession) throw sessionOver(message)
      throw new PlatformError('upstream_error', `The upstream answered ${status} and no JSON-RPC`, { id })
    }
    if (!isJson(type)) throw unusable('does not speak MCP', message)
    try {
      const text = await rewrite?.(asBuffer(bytes).toString())
      // A list of answers is none: nobody asked for several.
      if (text === undefined && !startsAsObject(bytes)) throw new SyntaxError('not an object')
      const whole = text === undefined ? asBuffer(bytes) : Buffer.from(text)
      if (whole.length <= answerAtOnceBytesMax)
        return new Response(whole as Uint8Array<ArrayBuffer>, { headers: jsonHeaders })
      if (!memory.take(holder, whole.length)) throw tooMany('Too many answers to this caller wait to be read', message)
      onHeld()
      // From here on only the client is waited for, and not for long.
      onAnswered()
      const onRead = once(() => {
        memory.giveBack(holder, whole.length)
        onEnd()
      })
      return new Response(inPieces(whole, onRead), { headers: jsonHeaders })
    } catch (error) {
      if (error instanceof SyntaxError)
        throw new PlatformError('upstream_error', 'The upstream does not speak MCP', { id })
      throw error
    }
  }
}

function unusable(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('upstream_error', `The upstream ${what}`, { id })
}

function tooMany(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('rate_limited', `${what}: try again`, { id })
}

function sessionOver({ id }: Message): PlatformError {
  return new PlatformError('session_not_found', 'The session is over: initialize again', { id })
}

/** Whatever calls it, and however often. */
function once(act: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) act()
    isDone = true
  }
}

/** Nobody reads it. */
function drop({ body }: UpstreamAnswer): void {
  if (body instanceof ReadableStream) void body.cancel().catch(() => {})
}

/** The error of an answer, and nothing that came beside it; undefined where there is none, or too much to look into. */
function rpcErrorIn(text: string): string | undefined {
  try {
    const message = readAnswer(text) as { jsonrpc?: unknown; id?: unknown; error?: unknown } | null
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

/** Before an answer; a server may pad it to be sent at once. */
const spacesMax = 64 * 1024

/** Without reading it all: it is passed on as it is. */
function startsAsObject(bytes: Uint8Array): boolean {
  const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
  let first = 0
  while (first < spacesMax && isSpace(bytes[first])) first += 1
  return bytes[first] === 0x7b
}
