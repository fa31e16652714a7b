/**
 * The probe: the first contact with an MCP server, when a connection is created. Determines whether the server
 * responds, whether it requires authorization, and its name and version.
 */

import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import { introspectionPagesMax, rpcKeysMax } from '../limits.ts'
import { type ConnectionStatus, ServerInfo } from '../model/connection.ts'
import { notMcp, ownClientInfo, statelessRevision } from '../model/mcp.ts'
import { nextTurn } from '../next-turn.ts'
import { validatorOf } from '../schema/check.ts'
import { cutText } from '../schema/cut-text.ts'
import { createPartsCounter, type ValuesOfAll } from '../schema/json-parts.ts'
import { toResponse, type Upstream, UpstreamError, type UpstreamRequest } from './upstream.ts'

/** Contract 6.4: time that postern waits for the server of a new connection when it contacts it first. Past it: the connection is created with the state `error`. */
const probeTimeoutMs = 5000

/** Levels of what a server answers to a greeting or an introspection, twice what is kept. Past it: it is not read. */
const initializeDepthMax = 64
/** Ours: values, keys and lines of a server's answer to `initialize`; an ordinary answer has some tens. The official package validates all of them at once. Past it: the connection is created with the state `error`. */
const greetingPartsMax = 2000
/** Ours: values, keys and lines of a server's response when postern asks what the server has, for example of a page of tools. Past it: a warning, or 502. */
const listedPartsMax = 30_000
/** Ours: values in all pages of an introspection, as many as a body that writes a server may have; they are checked in one piece. Past it: a warning, or 502. */
const introspectedValuesMax = 50_000
/** Characters of an error by which a server refuses to say what it has. Past it: cut. */
export const serverErrorCharsMax = 200
/** Bytes of a probe's response; instructions and icons fit. Past it: the connection is created in state `error`. */
export const probeResponseBytesMax = 256 * 1024
/** Bytes of that response parsed in one turn of the event loop; about five milliseconds. Past it: the next turn. */
const probeBytesAtOnce = 4 * 1024
/**
 * Requests during a probe; it needs five, and answers each request of the server with one more. Past it: the
 * connection is created with the state `error`.
 */
export const probeRequestsMax = 20

export interface ProbeResult {
  readonly status: ConnectionStatus
  readonly serverInfo?: ServerInfo
}

const serverInfoShape = validatorOf(ServerInfo)
const fieldNames = Object.keys(ServerInfo.properties)

/** The holder whose shares are used, and the client's `Via` header. */
type Asking = Pick<UpstreamRequest, 'holder' | 'via'>

/**
 * Tries the handshake era first, which most servers support; a server that refuses it is tried in revision 2026-07-28.
 * Both together take at most `probeTimeoutMs`. Rejects only with UpstreamError `refused`; any other failure becomes the
 * connection's status. If both fail, the message is that of the first.
 */
export async function probeServer(
  upstream: Upstream,
  url: string,
  headers: Readonly<Record<string, string>>,
  asking: Asking,
): Promise<ProbeResult> {
  const initialized = await initializeServer(upstream, {
    url,
    headers,
    asking,
    bounds: { timeoutMs: probeTimeoutMs, requests: probeRequestsMax, bytes: probeResponseBytesMax },
    async ask(client): Promise<ProbeResult> {
      const serverInfo = readServerInfo(client.getServerVersion())
      return { status: { state: 'connected' }, ...(serverInfo && { serverInfo }) }
    },
  })
  if ('result' in initialized) return initialized.result
  if (initialized.wantsAuthorization) return { status: { state: 'auth_required' } }
  return { status: { state: 'error', message: initialized.problem } }
}

export interface Initialization<T> {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly asking: Asking
  /** In all: time, HTTP requests, and bytes of their responses. */
  readonly bounds: { readonly timeoutMs: number; readonly requests: number; readonly bytes: number }
  /** Asks what is to be known, once the server is initialized. An error that it throws is a problem of the server. */
  readonly ask: (client: Client, options: RequestOptions) => Promise<T>
}

/** `isRefusal`: the server responded with an error, so another revision may work. */
type Initialized<T> =
  | { readonly result: T }
  | { readonly problem: string; readonly isRefusal: boolean; readonly wantsAuthorization: boolean }

/**
 * Greets a server in the handshake era, and if it refuses that, in revision 2026-07-28. Rejects only with UpstreamError
 * `refused`. If both fail, the problem is that of the first.
 */
export async function initializeServer<T>(
  upstream: Upstream,
  initialization: Initialization<T>,
): Promise<Initialized<T>> {
  const { timeoutMs, requests, bytes } = initialization.bounds
  const left = {
    deadline: AbortSignal.timeout(timeoutMs),
    requests,
    bytes,
    all: { max: introspectedValuesMax, values: 0 },
  }
  const first = await connectClient(upstream, initialization, left, 'legacy')
  if ('result' in first || !first.isRefusal || first.wantsAuthorization) return first
  const second = await connectClient(upstream, initialization, left, { pin: statelessRevision })
  return 'result' in second || second.wantsAuthorization ? second : first
}

/** One attempt, by the official client package. `left`: the rest of the bounds. */
async function connectClient<T>(
  upstream: Upstream,
  { url, headers, asking: { holder, via }, bounds, ask }: Initialization<T>,
  left: Left & { readonly deadline: AbortSignal; requests: number },
  mode: 'legacy' | { readonly pin: string },
): Promise<Initialized<T>> {
  const { Client, ProtocolError, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  let refused: UpstreamError | undefined
  let wantsAuthorization = false
  let isRefusal = false
  let isInitialized = false
  let problem: string | undefined
  const enough = new AbortController()
  const signal = AbortSignal.any([left.deadline, enough.signal])
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (input, init) => {
      left.requests -= 1
      if (left.requests < 0) {
        problem = 'The server cannot be used: postern would need too many requests to initialize it'
        enough.abort()
        throw new Error(problem)
      }
      // Many servers have no stream of their own (GET), and no sessions to end (DELETE).
      const isMessage = init?.method === 'POST'
      try {
        const answer = await upstream.send({
          url: String(input),
          method: (init?.method ?? 'GET') as 'GET',
          headers: Object.fromEntries(new Headers(init?.headers as Record<string, string>)),
          timeoutMs: bounds.timeoutMs,
          holder,
          via,
          signal: () => signal,
          isParsed: true,
          ...(typeof init?.body === 'string' && { body: init.body }),
        })
        const { status } = answer
        if (status === 401) wantsAuthorization = true
        if (isMessage && status >= 400 && status < 500) isRefusal = true
        if (isMessage && (status < 200 || status > 299))
          problem =
            status === 403
              ? 'The server answered 403: it refuses these headers, or wants a key'
              : `The server ${notMcp} (it answered ${status})`
        const partsMax = isGreeting(init?.body) ? greetingPartsMax : listedPartsMax
        return limitFetch(toResponse(answer), { left, partsMax }, (reason) => {
          problem = reason ?? `The server sent too much: at most ${bounds.bytes} bytes are read`
          enough.abort()
        })
      } catch (error) {
        if (error instanceof UpstreamError) {
          if (error.kind === 'refused') refused = error
          if (isMessage && !left.deadline.aborted) problem = `The server could not be reached: ${error.message}`
        }
        throw error
      }
    },
  })
  const client = new Client(ownClientInfo, { versionNegotiation: { mode }, listMaxPages: introspectionPagesMax })
  try {
    const options = { timeout: bounds.timeoutMs, signal }
    await client.connect(transport, options)
    isInitialized = true
    return { result: await ask(client, options) }
  } catch (error) {
    if (refused !== undefined) throw refused
    const isError = error instanceof ProtocolError
    if (error instanceof IntrospectionError) problem = error.message
    else if (isError && isInitialized) problem = `The server answered with an error: ${shortened(error.message)}`
    else if (left.deadline.aborted) problem ??= 'The server did not answer in time'
    problem ??= isInitialized ? "The server's lists cannot be read" : `The server ${notMcp}`
    // One that was initialized speaks this revision.
    return { problem, isRefusal: !isInitialized && (isRefusal || isError), wantsAuthorization }
  } finally {
    // Ends the session that the probe opened, in the background.
    void transport
      .terminateSession()
      .catch(() => {})
      .then(() => client.close())
      .catch(() => {})
  }
}

/** A server's own words, as far as messages repeat them, on one line. */
export function shortened(text: string): string {
  const line = cutText(text, serverErrorCharsMax).replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ')
  return text.length <= serverErrorCharsMax ? line : `${line}…`
}

/** A server's answer is not what was asked for. The message is for people. */
export class IntrospectionError extends Error {}

/** The rest of the bounds of all responses. */
interface Left {
  bytes: number
  readonly all: ValuesOfAll
}

/**
 * Fails the body when `left` is used up, or when it has more parts than JSON may have here, which the package would
 * build before anybody could count them. Passes it on in pieces of `probeBytesAtOnce` with the event loop yielded in
 * between: the package parses each piece at once.
 */
function limitFetch(
  response: Response,
  { left, partsMax }: { readonly left: Left; readonly partsMax: number },
  onTooMuch: (reason?: string) => void,
): Response {
  if (response.body === null) return response
  const bounds = { keysMax: Math.min(partsMax, rpcKeysMax), valuesMax: partsMax }
  const parts = createPartsCounter({ depthMax: initializeDepthMax, ...bounds, all: left.all })
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(chunk, controller) {
        const stop = (reason?: string) => {
          controller.error(new Error('the server sent too much'))
          onTooMuch(reason)
        }
        left.bytes -= chunk.length
        if (left.bytes < 0) return stop()
        for (let at = 0; at < chunk.length; at += probeBytesAtOnce) {
          if (at > 0) await nextTurn()
          const piece = chunk.subarray(at, at + probeBytesAtOnce)
          const tooMany = parts(piece)
          if (tooMany !== undefined) return stop(`The server’s answer ${tooMany}`)
          controller.enqueue(piece)
        }
      },
    }),
  )
  return new Response(body, { status: response.status, headers: response.headers })
}

/** Whether a request of the package asks for no list. */
const isGreeting = (body: unknown) => !/"method":"[a-z]+\/list"/.test(typeof body === 'string' ? body : '')

/** The known fields of the server's info; undefined if they are invalid or too large. */
export function readServerInfo(given: unknown): ServerInfo | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const known = Object.fromEntries(Object.entries(given).filter(([name]) => fieldNames.includes(name)))
  return serverInfoShape.isValid(known) && JSON.stringify(known).length < 16_384 ? known : undefined
}
