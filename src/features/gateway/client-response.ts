/** Turns an upstream's response into the client's: the same bytes if they are usable, otherwise a PlatformError. */

import { PlatformError } from '../../errors.ts'
import type { Allowance } from '../../fairness/allowance.ts'
import { isJson } from '../../http/body.ts'
import { rpcErrorText } from '../../http/error-response.ts'
import { eventStream, noStoreJson, streamInPieces } from '../../http/respond.ts'
import { responseInOnePieceBytesMax } from '../../limits.ts'
import { notMcp } from '../../model/mcp.ts'
import { textOf, utf8Of } from '../../storage/bytes.ts'
import type { UpstreamResponse } from '../../upstream/upstream.ts'
import { parsingResponse } from './filter-tools.ts'
import { discardBody } from './platform-session.ts'
import { errorsAsMessages, messageEvent, type Rewrite, relayStream } from './relayed-stream.ts'
import { wantedScope } from './send-with-credentials.ts'
import { howToOpen, sessionExpired, tooMany, type UpstreamCall, unusableUpstream } from './upstream-call.ts'

/** Ours: white space before a response that is passed on; servers pad responses to flush buffers. Past it: 502. */
export const leadingSpacesMax = 64 * 1024

export interface ClientResponseOptions {
  /** Whether the client sent a session id that was valid. Then a 404 means that the session has ended. */
  readonly hasClientSession: boolean
  /** Keeps the call slot of an open response until the returned function is called: the client has read it or left. */
  readonly keepSlot: () => () => void
}

/** Built once; a Response copies its headers. */
const jsonHeaders = new Headers(noStoreJson)
const acceptedHeaders = new Headers({ 'cache-control': 'no-store' })
const streamHeaders = new Headers(eventStream)

/**
 * Order matters: a 401, a compressed body, a redirect and a 5xx have no usable body, so they are handled before it is
 * read. Throws PlatformError only; a response that is not MCP becomes `upstream_error`.
 */
export function clientResponse(
  response: UpstreamResponse,
  call: UpstreamCall,
  options: ClientResponseOptions,
): Promise<Response> | Response {
  if (response.status === 401) throw authorizationRequired(call)
  if (response.status !== 403 || call.credentials === undefined) return usableResponse(response, call, options)
  // With the token of somebody who has signed in: that person must allow more.
  return wantedScope(response).then((wanted) => {
    if (wanted === undefined) return usableResponse(response, call, options)
    throw authorizationRequired(call)
  })
}

function usableResponse(
  response: UpstreamResponse,
  call: UpstreamCall,
  options: ClientResponseOptions,
): Promise<Response> | Response {
  const { message } = call
  const { status, body } = response
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = response.headers
  if (encoding !== 'identity') {
    discardBody(response)
    throw unusableUpstream('sent a compressed response, which postern did not ask for', message)
  }
  if (status >= 300 && status < 400) {
    throw unusableUpstream(`answered with a redirect (${status}), which is not followed`, message)
  }
  if (status >= 500) throw unusableUpstream(`answered ${status}`, message)
  if (status === 202 || status === 204) {
    discardBody(response)
    return new Response(null, { status: 202, headers: acceptedHeaders })
  }
  if (body instanceof ReadableStream) {
    const releaseStream = holdStream(response, call)
    return streamResponse(body, call, options.keepSlot(), releaseStream)
  }
  const bytes = body ?? new Uint8Array(0)
  if (status >= 400) return errorOf(bytes, response, call, options)
  if (!isJson(type)) throw unusableUpstream(notMcp, message)
  // An array of messages is not a valid response to a single request.
  if (!startsAsObject(bytes)) throw unusableUpstream(notMcp, message)
  if (call.rewrite === undefined) return sendWhole(bytes, call, options)
  return rewriteWhole(call.rewrite, bytes, call).then((text) => sendWhole(text, call, options))
}

/** Bytes of a response whose text is not counted while it is rewritten: most have fewer. Past it: it counts. */
const uncountedTextBytesMax = 64 * 1024
/** Bytes of memory of a text for each byte of a response. */
const textMemoryFactor = 2

/** Rewrites a response. Its text may wait long for the time of its owner. Throws PlatformError. */
async function rewriteWhole(rewrite: Rewrite, bytes: Uint8Array, call: UpstreamCall): Promise<string> {
  const { allowance, message } = call
  const isLarge = bytes.length > uncountedTextBytesMax
  const letGo = isLarge ? allowance.takeAnswer(bytes.length * textMemoryFactor) : undefined // 429
  try {
    return await rewrite(textOf(bytes))
  } catch (error) {
    throw error instanceof SyntaxError ? unusableUpstream(notMcp, message) : error
  } finally {
    letGo?.()
  }
}

function authorizationRequired(call: UpstreamCall) {
  const { connection, isOfSignedInClient, onStatus } = call
  const { id } = call.message
  const signInUrl = call.signInUrl()
  const links =
    signInUrl === undefined ? connection.stored.connection.status : { setupUrl: signInUrl, authorizationUrl: signInUrl }
  const { setupUrl, authorizationUrl } = links as { setupUrl?: string; authorizationUrl?: string }
  onStatus({ state: 'auth_required', ...(setupUrl && { setupUrl }), ...(authorizationUrl && { authorizationUrl }) })
  const options = { id, setupUrl, ...(authorizationUrl !== undefined && { data: { authorizationUrl } }) }
  const message = `The MCP server requires a sign-in${howToOpen(setupUrl)}`
  if (!isOfSignedInClient) return new PlatformError('upstream_unauthorized', message, options)
  // A 401 would make a client that has signed in here sign in here again, in vain.
  const rpcHeaders = { 'www-authenticate': 'Bearer realm="postern"' }
  return new PlatformError('upstream_sign_in', message, { ...options, rpcHeaders })
}

/** Bytes of memory that each open stream takes before it carries anything; measured. The owner's memory counts them. */
export const openStreamBytes = 32 * 1024
/** Bytes of a head that are counted with that: most have fewer. */
const uncountedHeadBytes = 4 * 1024
/** The runtime keeps a head as long as its stream is open, in about so many times its size. */
const headMemoryFactor = 4

/** Counts an open stream, and a large head. Returns the function that ends that. Throws `rate_limited` without room. */
function holdStream(response: UpstreamResponse, { holder, memory, message }: UpstreamCall): () => void {
  const bytes = Object.entries(response.headers).reduce(
    (sum, [name, value]) => sum + name.length + (value?.length ?? 0),
    0,
  )
  const amount = openStreamBytes + (bytes > uncountedHeadBytes ? bytes * headMemoryFactor : 0)
  if (!memory.take(holder, amount)) {
    discardBody(response)
    throw tooMany('This caller has too many unread responses open: read or close some', message)
  }
  return () => memory.giveBack(holder, amount)
}

/** Relays an event stream. A stream whose authorization ends is closed with an error event. */
function streamResponse(
  body: ReadableStream<Uint8Array>,
  { message: { id }, progress, allowance, holder, memory, rewrite, watchAccess, restoreIdleTimeout }: UpstreamCall,
  releaseSlot: () => void,
  releaseStream: () => void,
): Response {
  const stream = relayStream(body, {
    onEnd() {
      releaseStream()
      releaseSlot()
      restoreIdleTimeout()
    },
    watch: (end) =>
      watchAccess((why) => {
        progress.endedBy = why
        // The blank lines end an event that may have been cut off.
        end(`\n\n${messageEvent(rpcErrorText(why, id))}`)
      }),
    ...(rewrite && { rewrite: errorsAsMessages(rewrite, id), owner: { holder, memory, allowance } }),
  })
  return new Response(stream, { headers: streamHeaders })
}

/** The response to a 4xx: the upstream's JSON-RPC error, if the body is one. Throws PlatformError otherwise. */
async function errorOf(
  bytes: Uint8Array,
  { status, headers }: UpstreamResponse,
  call: UpstreamCall,
  options: ClientResponseOptions,
): Promise<Response> {
  const { message, allowance } = call
  const error = isJson(headers['content-type']) ? await rpcErrorIn(textOf(bytes), allowance) : undefined
  if (error !== undefined) {
    const text = call.rewrite === undefined ? error : await rewriteWhole(call.rewrite, Buffer.from(error), call)
    return sendWhole(text, call, options, status)
  }
  if (status === 404 && options.hasClientSession) throw sessionExpired(message)
  throw unusableUpstream(
    `answered ${status} without JSON-RPC: check the URL and the headers of the connection`,
    message,
  )
}

/** Responses above `responseInOnePieceBytesMax` are sent in pieces, so that we know when the client has read them. */
function sendWhole(
  answer: Uint8Array<ArrayBuffer> | string,
  { message, holder, memory, progress, restoreIdleTimeout }: UpstreamCall,
  { keepSlot }: ClientResponseOptions,
  status = 200,
): Response {
  const whole = typeof answer === 'string' ? utf8Of(answer) : answer
  if (whole.length <= responseInOnePieceBytesMax) {
    progress.body = whole
    return new Response(whole, { status, headers: jsonHeaders })
  }
  if (!memory.take(holder, whole.length))
    throw tooMany('This caller has too many unread responses open: read or close some', message)
  const releaseSlot = keepSlot()
  // Only the client is waited for now, so the idle timeout applies again.
  restoreIdleTimeout()
  const onRead = () => {
    memory.giveBack(holder, whole.length)
    releaseSlot()
  }
  return new Response(streamInPieces(whole, onRead), { status, headers: jsonHeaders })
}

/**
 * The JSON-RPC error of a response, without any other fields: beside the error a server could send a result that was
 * never filtered. Undefined if there is no error, or the body is too large to parse. Rejects with `rate_limited`.
 */
async function rpcErrorIn(text: string, allowance: Pick<Allowance, 'parse'>): Promise<string | undefined> {
  try {
    const message = (await allowance.parse(text.length, parsingResponse(text))) as {
      jsonrpc?: unknown
      id?: unknown
      error?: unknown
    } | null
    if (message?.jsonrpc !== '2.0' || typeof message.error !== 'object' || message.error === null) return undefined
    return JSON.stringify({ jsonrpc: '2.0', id: message.id ?? null, error: message.error })
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'rate_limited') throw error
    return undefined
  }
}

/** Whether the body, which is passed on unparsed, begins as a JSON object, with or without white space before it. */
function startsAsObject(bytes: Uint8Array): boolean {
  const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
  let first = 0
  while (first < leadingSpacesMax && isSpace(bytes[first])) first += 1
  return bytes[first] === 0x7b
}
