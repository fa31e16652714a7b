/**
 * One JSON-RPC message through a connection, held to the token's policy (contract, gateway): the walk, top to bottom.
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
  /** Bytes of answers under way. */
  readonly memory: Shares
  readonly mocks: Mocks
  readonly turns: Turns
  readonly streams: OpenStreams
  /**
   * This request may take longer than the runtime lets one: its own budgets bound it, until what this gives is called.
   * From then on its client must read what it gets.
   */
  readonly disableIdleTimeout: (request: Request) => () => void
  /** Who we are to other intermediaries: a request that came through us before is a loop. */
  readonly pseudonym: string
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
}

/** A request whose caller may ask something of the connection; what it asks is decided later. */
export interface AuthorizedCall {
  readonly context: RequestContext
  readonly connection: AuthorizedConnection
  /** When, in milliseconds that never go back. */
  readonly at: number
}

/** Throws 401, 404, 403: before the body is read. */
export async function authorizeCall(deps: GatewayDeps, request: Request): Promise<AuthorizedCall> {
  const context = await deps.authorizer.authenticate(request)
  return { context, connection: await deps.authorizer.connection(context, 'execute'), at: deps.monotonic() }
}

/** Again, where that was a while ago: the credential or the connection may have ended meanwhile. Throws as it does. */
export async function reauthorize(deps: GatewayDeps, call: AuthorizedCall): Promise<AuthorizedCall> {
  return deps.monotonic() - call.at > slowBodyMs ? authorizeCall(deps, call.context.request) : call
}

/** Sends the message to the connection's upstream, where the token allows it. Throws PlatformError. */
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
  // Deciding may have waited for its turn.
  await reauthorize(deps, call)
  if (!decision.allowed) {
    deps.denials.policy(request, caller, access, decision)
    throw new PlatformError('forbidden', `The token does not allow this: ${constraintOf(decision)}`, {
      id: message.id,
      // Without `error=`: clients would take it for a scope that they could ask for, and hide the message.
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
  // Of the headers that repeat arguments only those go on that a rule on arguments was asked of.
  const sent = speaksOfArguments(blocks) ? withoutRenamedParams(headers, message) : headers
  const response = await proxy.send({
    ref,
    connection,
    ownHeaders: openHeaders(privatePart, ref, headersKey),
    sessionKey,
    holder: caller,
    message,
    headers: sent,
    via,
    signal: () => request.signal,
    rewrite,
    watch: (end) =>
      streams.watch(
        () => authorizeCall(deps, request),
        (why) => end(endOfStream(why)),
      ),
    onResponse: disableIdleTimeout(request),
  })
  try {
    // Who may not ask any more is told nothing of what was asked before.
    await reauthorize(deps, call)
    return response
  } catch (thrown) {
    await response.body?.cancel()
    throw thrown
  }
}

/** Whom a session belongs to: the token or key, and the connection as it is pointed. */
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
 * What is read takes more memory than its text: that counts for the holder's share until it was looked at. Throws
 * `rate_limited`.
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

/** What the reader of a stream is told when it must not go on. */
function endOfStream(thrown: unknown): PlatformError {
  const error = asPlatformError(thrown)
  return error.code === 'internal'
    ? new PlatformError('unavailable', 'Whether this stream may continue cannot be checked right now')
    : error
}

/** A connection that leads back here, through a proxy perhaps, would make thousands of requests of one. */
function loops({ id }: Message): PlatformError {
  return new PlatformError('loop_detected', 'The connection leads back to this platform: point it to another server', {
    id,
  })
}
