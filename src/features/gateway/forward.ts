/**
 * Forwards one JSON-RPC message through a connection if the token's policy allows it (contract, gateway). `forward`
 * has the steps in order.
 */

import type { AuthorizedConnection, Authorizer, RequestContext } from '../../auth/authorize.ts'
import type { Denials } from '../../auth/denials.ts'
import { openHeaders } from '../../auth/sealed-headers.ts'
import { constraintOf, PlatformError } from '../../errors.ts'
import { asPlatformError } from '../../http/error-response.ts'
import type { Holder, Shares } from '../../http/shares.ts'
import type { Turns } from '../../http/turns.ts'
import { parsedResponseMemoryFactor, slowBodyMs } from '../../limits.ts'
import { decideOnMessage } from '../../policy/decide.ts'
import { restrictsTools, speaksOfArguments } from '../../policy/tools.ts'
import { equalBytes } from '../../storage/bytes.ts'
import type { Mocks } from '../mocks/mocks.ts'
import { filterTools } from './filter-tools.ts'
import { type Message, withoutRenamedParams } from './message.ts'
import type { OpenStreams } from './open-streams.ts'
import type { UpstreamProxy } from './proxy.ts'
import type { Sessions } from './sessions.ts'
import { rewriteEvents, rewriteResponse } from './stream.ts'

export interface GatewayDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  readonly headersKey: Buffer
  readonly proxy: UpstreamProxy
  readonly sessions: Sessions
  /** Accounts for the bytes of responses in progress. */
  readonly memory: Shares
  readonly mocks: Mocks
  readonly turns: Turns
  readonly streams: OpenStreams
  /**
   * Suspends the server's idle timeout for this request, because an upstream may be silent for longer; the gateway's
   * own timeouts apply instead. Returns a function that restores it, for when only the client is waited for.
   */
  readonly disableIdleTimeout: (request: Request) => () => void
  /** Our name in `Via` (RFC 9110, 7.6.3). A request that already carries it is a loop. */
  readonly pseudonym: string
  /** A monotonic clock, in milliseconds. */
  readonly monotonic: () => number
}

/** A request that may use the connection. Whether the policy allows its message is decided later, in `forward`. */
export interface AuthorizedCall {
  readonly context: RequestContext
  readonly connection: AuthorizedConnection
  /** When it was authorized, by the monotonic clock. */
  readonly at: number
}

/** Authorizes a request by its credential and path, before the body is read. Throws 401, 404, 403. */
export async function authorizeCall(deps: GatewayDeps, request: Request, isRepeated = false): Promise<AuthorizedCall> {
  const context = await deps.authorizer.authenticate(request, isRepeated)
  return { context, connection: await deps.authorizer.requireConnection(context, 'execute'), at: deps.monotonic() }
}

/**
 * Authorizes again if more than `slowBodyMs` have passed: the credential may have been revoked, or the connection
 * removed. Throws what `authorizeCall` throws.
 */
export async function reauthorize(deps: GatewayDeps, call: AuthorizedCall): Promise<AuthorizedCall> {
  return deps.monotonic() - call.at > slowBodyMs ? authorizeCall(deps, call.context.request, true) : call
}

/**
 * Evaluates the policy on the message, then answers from the mock or sends it upstream. Throws PlatformError:
 * `forbidden`, `loop_detected`, `input_required`, `upstream_error`, and what the mock and the proxy throw.
 */
export async function forward(
  deps: GatewayDeps,
  call: AuthorizedCall,
  message: Message,
  headers: Headers,
): Promise<Response> {
  const { headersKey, proxy, sessions, memory, mocks, disableIdleTimeout, turns, streams, pseudonym } = deps
  const { context } = call
  const { namespace, connectionId, stored } = call.connection
  const { caller, request, registry } = context
  const { connection, privatePart } = stored
  const via = request.headers.get('via') ?? undefined
  if (via?.includes(pseudonym) === true) throw loops(message)
  const sessionKey = sessionKeyOf(call)

  const sessionId = headers.get('mcp-session-id')
  const access = {
    namespace,
    resource: 'connections',
    operation: 'execute',
    metadata: { connectionId, metadata: connection.metadata },
    rpc: message.body,
    isReply:
      message.method === undefined && sessionId !== null && typeof sessions.open(sessionKey, sessionId) === 'object',
  } as const
  const decision = await turns.run(caller, decideOnMessage(caller.blocks, access))
  // An expensive policy is evaluated in turns, so time may have passed. If the connection has changed meanwhile,
  // perhaps to another URL, the message is decided on anew.
  const current = await reauthorize(deps, call)
  if (!isSameConnection(current, call)) return forward(deps, current, message, headers)
  if (!decision.allowed) {
    deps.denials.policy(request, caller, access, decision)
    throw new PlatformError('forbidden', `The token does not allow this: ${constraintOf(decision)}`, {
      id: message.id,
      // Without `error=`: clients would read it as a missing OAuth scope that they can request, and hide the message.
      rpcHeaders: { 'www-authenticate': 'Bearer realm="postern"' },
    })
  }

  const { blocks } = caller
  const isNarrowed = message.method === 'tools/list' && restrictsTools(blocks)
  const narrowing = (data: string) =>
    readWithin(memory, caller, data.length, () => turns.run(caller, filterTools(data, blocks)))
  const rewrite = isNarrowed ? narrowing : undefined
  const { status, mock } = connection
  const { id } = message
  if (mock?.enabled === true) {
    const { scenario = '' } = mock
    const answer = await mocks.answer({
      server: privatePart.server ?? '',
      scenario,
      registry,
      message,
      headers,
      request,
    })
    // A recorded answer may be delayed by a minute.
    await reauthorize(deps, call)
    if (answer !== undefined)
      return rewrite === undefined ? answer : rewriteResponse(answer, rewriteEvents(rewrite, id))
    throw new PlatformError('upstream_error', 'The server that this connection mocks is no longer registered', { id })
  }
  if (status.state === 'input_required') {
    const { http, missing } = status
    throw new PlatformError('input_required', 'The connection requires input', { id, data: { http, missing } })
  }
  if (status.state === 'disconnected' || connection.transport === 'uplink' || connection.mcpUrl === null) {
    throw new PlatformError('upstream_error', 'The connection has no reachable upstream', { id })
  }
  const ref = { namespace, connectionId }
  // If a rule constrains arguments, only `Mcp-Param-…` headers that match the checked arguments are forwarded.
  const sent = speaksOfArguments(blocks) ? withoutRenamedParams(headers, message) : headers
  const response = await proxy.send({
    ref,
    connection,
    connectionHeaders: openHeaders(privatePart, ref, headersKey),
    sessionKey,
    holder: caller,
    message,
    headers: sent,
    via,
    signal: () => request.signal,
    rewrite,
    watchAccess: (end) =>
      streams.watch(
        () => authorizeCall(deps, request, true),
        (why) => end(endOfStream(why)),
      ),
    restoreIdleTimeout: disableIdleTimeout(request),
  })
  try {
    // A caller that was revoked during the call receives no result of it.
    await reauthorize(deps, call)
    return response
  } catch (thrown) {
    await response.body?.cancel()
    throw thrown
  }
}

/**
 * Identifies the owner of a session: the connection in its present form (creation time, URL and headers) and the token,
 * or the API key used directly. Changing any of them ends the session.
 */
function sessionKeyOf({
  context: { caller },
  connection: { namespace, connectionId, stored },
}: AuthorizedCall): string {
  const { connection, privatePart } = stored
  return [
    `${namespace}/${connectionId}`,
    caller.token?.jti ?? caller.keyId,
    connection.createdAt,
    connection.mcpUrl,
    privatePart.headers ?? '',
  ].join('\0')
}

/**
 * Runs `read`, and counts the memory that the parsed form takes, `parsedResponseMemoryFactor` bytes per character,
 * against the holder's share meanwhile. Throws `rate_limited` if the share is used up.
 */
async function readWithin<T>(memory: Shares, holder: Holder, characters: number, read: () => Promise<T>): Promise<T> {
  const amount = characters * parsedResponseMemoryFactor
  if (!memory.take(holder, amount)) {
    throw new PlatformError('rate_limited', 'Too many responses to this caller are being read: try again')
  }
  try {
    return await read()
  } finally {
    memory.giveBack(holder, amount)
  }
}

function isSameConnection(
  { connection: { stored: a } }: AuthorizedCall,
  { connection: { stored: b } }: AuthorizedCall,
) {
  return a === b || (equalBytes(a.bytes, b.bytes) && equalBytes(a.privateBytes, b.privateBytes ?? null))
}

/** The error sent as the last event of a stream whose authorization failed. */
function endOfStream(thrown: unknown): PlatformError {
  const error = asPlatformError(thrown)
  return error.code === 'internal'
    ? new PlatformError('unavailable', 'Whether this stream may continue cannot be checked right now')
    : error
}

/**
 * Without this check a connection that leads back here, perhaps through a proxy, would multiply one request endlessly.
 */
function loops({ id }: Message): PlatformError {
  return new PlatformError('loop_detected', 'The connection leads back to this platform: point it to another server', {
    id,
  })
}
