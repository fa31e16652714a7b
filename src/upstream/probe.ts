/**
 * The probe: the first contact with an MCP server, when a connection is created. Determines whether the server
 * responds, whether it requires authorization, and its name and version.
 */

import { probeBytesAtOnce, probeRequestsMax, probeResponseBytesMax, probeTimeoutMs } from '../limits.ts'
import { type ConnectionStatus, ServerInfo } from '../model/connection.ts'
import { statelessRevision } from '../model/mcp.ts'
import { validatorOf } from '../schema/check.ts'
import { version } from '../version.ts'
import { toResponse, type Upstream, UpstreamError, type UpstreamRequest } from './upstream.ts'

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
  const deadline = AbortSignal.timeout(probeTimeoutMs)
  const greet = (mode: Greeting['mode']) => connectClient(upstream, { url, headers, asking, deadline, mode })
  const first = await greet('legacy')
  if ('learnt' in first) return first.learnt
  const second = first.isRefusal ? await greet({ pin: statelessRevision }) : first
  return 'learnt' in second ? second.learnt : { status: { state: 'error', message: first.problem } }
}

interface Greeting {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly asking: Asking
  readonly deadline: AbortSignal
  readonly mode: 'legacy' | { readonly pin: string }
}

/** `isRefusal`: the server responded with an error, so another revision may work. */
type Greeted = { readonly learnt: ProbeResult } | { readonly problem: string; readonly isRefusal: boolean }

/** One attempt, by the official client package. */
async function connectClient(
  upstream: Upstream,
  { url, headers, asking: { holder, via }, deadline, mode }: Greeting,
): Promise<Greeted> {
  const { Client, ProtocolError, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  let refused: UpstreamError | undefined
  let wantsAuthorization = false
  let isRefusal = false
  let problem = 'The server does not speak MCP'
  let requests = 0
  const enough = new AbortController()
  const signal = AbortSignal.any([deadline, enough.signal])
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (input, init) => {
      requests += 1
      if (requests > probeRequestsMax) {
        problem = 'The server does not speak MCP: it asks too much for a greeting'
        enough.abort()
        throw new Error(problem)
      }
      try {
        const answer = await upstream.send({
          url: String(input),
          method: (init?.method ?? 'GET') as 'GET',
          headers: Object.fromEntries(new Headers(init?.headers as Record<string, string>)),
          timeoutMs: probeTimeoutMs,
          ...(holder !== undefined && { holder }),
          via,
          signal: () => signal,
          ...(typeof init?.body === 'string' && { body: init.body }),
        })
        const { status } = answer
        if (status === 401) wantsAuthorization = true
        isRefusal ||= status >= 400 && status < 500
        if (status < 200 || status > 299) problem = `The server does not speak MCP: it answered ${status}`
        return limitFetch(toResponse(answer), () => {
          problem = 'The server does not speak MCP: its response to "initialize" is too large'
          enough.abort()
        })
      } catch (error) {
        if (error instanceof UpstreamError) {
          if (error.kind === 'refused') refused = error
          problem = `The server could not be reached: ${error.message}`
        }
        throw error
      }
    },
  })
  const client = new Client({ name: 'postern', version }, { versionNegotiation: { mode } })
  try {
    await client.connect(transport, { timeout: probeTimeoutMs, signal })
    const serverInfo = readServerInfo(client.getServerVersion())
    return { learnt: { status: { state: 'connected' }, ...(serverInfo && { serverInfo }) } }
  } catch (error) {
    if (refused !== undefined) throw refused
    if (wantsAuthorization) return { learnt: { status: { state: 'auth_required' } } }
    return { problem, isRefusal: isRefusal || error instanceof ProtocolError }
  } finally {
    // Ends the session that the probe opened, in the background.
    void transport
      .terminateSession()
      .catch(() => {})
      .then(() => client.close())
      .catch(() => {})
  }
}

/**
 * Fails the body past `probeResponseBytesMax`, and passes it on in pieces of `probeBytesAtOnce` with the event loop
 * yielded in between: the package parses each piece at once.
 */
function limitFetch(response: Response, onTooMuch: () => void): Response {
  if (response.body === null) return response
  let left = probeResponseBytesMax
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      async transform(chunk, controller) {
        left -= chunk.length
        if (left < 0) {
          controller.error(new Error('the answer to a greeting is too large'))
          onTooMuch()
          return
        }
        for (let at = 0; at < chunk.length; at += probeBytesAtOnce) {
          if (at > 0) await new Promise((resolve) => setImmediate(resolve))
          controller.enqueue(chunk.subarray(at, at + probeBytesAtOnce))
        }
      },
    }),
  )
  return new Response(body, { status: response.status, headers: response.headers })
}

/** The known fields of the server's info; undefined if they are invalid or too large. */
function readServerInfo(given: unknown): ServerInfo | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const known = Object.fromEntries(Object.entries(given).filter(([name]) => fieldNames.includes(name)))
  return serverInfoShape.isValid(known) && JSON.stringify(known).length < 16_384 ? known : undefined
}
