/** One JSON-RPC message through a connection, held to the token's policy (contract, gateway): the walk, top to bottom. */

import { type Asking, ask, enterConnection, type Place } from '../access/namespace.ts'
import type { Refusals } from '../audit/refusals.ts'
import type { Authenticator } from '../auth/authenticate.ts'
import { openHeaders } from '../auth/sealed-headers.ts'
import { constraintOf } from '../errors.ts'
import type { Holder, Shares } from '../http/shares.ts'
import type { Turns } from '../http/turns.ts'
import { answerReadTimes, bodyPromptMs } from '../limits.ts'
import type { Mocks } from '../mocks/mock.ts'
import { type Soon, then } from '../model/soon.ts'
import { decideOnMessage } from '../policy/decide.ts'
import { narrowsTools, speaksOfArguments } from '../policy/tools.ts'
import type { StoredConnection } from '../storage/connections.ts'
import type { KnownConnections } from '../storage/known-connections.ts'
import { type Message, withoutRenamedParams } from './message.ts'
import { narrowTools } from './narrow.ts'
import type { OpenStreams } from './open-streams.ts'
import type { UpstreamProxy } from './proxy.ts'
import { asRpcError, RpcError } from './rpc-error.ts'
import type { Sessions } from './sessions.ts'
import { rewriteEvents, rewritten } from './stream.ts'

export interface GatewayDeps {
  readonly authenticator: Authenticator
  readonly refusals: Refusals
  readonly connections: KnownConnections
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
  readonly takeTime: (request: Request) => () => void
  /** Who we are to other intermediaries: a request that came through us before is a loop. */
  readonly pseudonym: string
}

/** What is asked of a connection, once it is clear that the caller may ask anything of it. */
export interface Entered {
  readonly asking: Asking
  readonly place: Place
  readonly stored: StoredConnection
  /** Milliseconds that never go back. */
  readonly at: number
}

/** 401, 404, 403: before the body is read. */
export function enter(deps: GatewayDeps, request: Request): Soon<Entered> {
  return then(ask(deps, request), (asking) =>
    then(enterConnection(asking, deps.connections, 'execute'), ({ namespace, connectionId, stored }) => {
      return { asking, place: { namespace, connectionId }, stored, at: performance.now() }
    }),
  )
}

/** The same, asked again where the body took its time: the credential or the connection may have ended meanwhile. */
export function stillEntered(deps: GatewayDeps, entered: Entered, request: Request): Soon<Entered> {
  return performance.now() - entered.at > bodyPromptMs ? enter(deps, request) : entered
}

/** The message, where the token allows it, to the connection's upstream. Throws RpcError. */
export async function exchange(
  deps: GatewayDeps,
  entered: Entered,
  message: Message,
  headers: Headers,
): Promise<Response> {
  const { headersKey, proxy, sessions, memory, mocks, takeTime, turns, streams, pseudonym } = deps
  const { asking, place, stored } = entered
  const { caller, request, refusals } = asking
  const { connection, beside } = stored
  const via = request.headers.get('via') ?? undefined
  if (via?.includes(pseudonym) === true) throw loops(message)
  const owner = [
    `${place.namespace}/${place.connectionId}`,
    caller.token?.jti ?? caller.keyId,
    connection.createdAt,
    connection.mcpUrl,
    beside.headers ?? '',
  ].join('\0')

  const sessionId = headers.get('mcp-session-id')
  const access = {
    namespace: place.namespace,
    resource: 'connections',
    operation: 'execute',
    metadata: { connectionId: place.connectionId, metadata: connection.metadata },
    rpc: message.body,
    isReply: message.method === undefined && sessionId !== null && typeof sessions.open(owner, sessionId) === 'object',
  } as const
  const deciding = turns.run(caller, decideOnMessage(caller.blocks, access))
  const decision = deciding instanceof Promise ? await deciding : deciding
  // What took its turns took its time: the credential or the connection may have ended meanwhile.
  if (deciding instanceof Promise) await enter(deps, request)
  if (!decision.allowed) {
    refusals.policy(request, caller, access, decision)
    throw new RpcError('forbidden', `The token does not allow this: ${constraintOf(decision)}`, {
      id: message.id,
      // Without `error=`: clients would take it for a scope that they could ask for, and hide the message.
      headers: { 'www-authenticate': 'Bearer realm="postern"' },
    })
  }

  const { blocks } = caller
  const isNarrowed = message.method === 'tools/list' && narrowsTools(blocks)
  const narrowing = (data: string) =>
    readWithin(memory, caller, data.length, () => turns.run(caller, narrowTools(data, blocks)))
  const rewrite = isNarrowed ? narrowing : undefined
  const { status, mock } = connection
  const { id } = message
  if (mock?.enabled === true) {
    const { registry } = asking
    const { scenario = '' } = mock
    const answer = await mocks.answer({ server: beside.server ?? '', scenario, registry, message, headers, request })
    if (answer !== undefined) return rewrite === undefined ? answer : rewritten(answer, rewriteEvents(rewrite, id))
    throw new RpcError('upstream_down', 'The server that this connection mocks is not registered any more', { id })
  }
  if (status.state === 'input_required') {
    const { http, missing } = status
    throw new RpcError('input_required', 'The connection waits for input', { id, data: { http, missing } })
  }
  if (status.state === 'disconnected' || connection.transport === 'uplink' || connection.mcpUrl === null) {
    throw new RpcError('upstream_down', 'The connection has no upstream that can be reached', { id })
  }
  const ownHeaders = openHeaders(beside, place, headersKey)
  const signal = () => request.signal
  // Of the headers that repeat arguments only those go on that a rule on arguments was asked of.
  const sent = speaksOfArguments(blocks) ? withoutRenamedParams(headers, message) : headers
  const onAnswered = takeTime(request)
  const answer = await proxy.send({
    place,
    connection,
    ownHeaders,
    owner,
    holder: caller,
    message,
    headers: sent,
    via,
    signal,
    rewrite,
    watch: (end) =>
      streams.watch(
        () => enter(deps, request),
        (why) => end(whyOver(why)),
      ),
    onAnswered,
  })
  try {
    // Who may not ask any more is told nothing of what was asked before.
    await stillEntered(deps, entered, request)
    return answer
  } catch (thrown) {
    await answer.body?.cancel()
    throw thrown
  }
}

/** What is read takes more memory than its text: that counts for the holder's share until it was looked at. Throws RpcError `too_many`. */
function readWithin<T>(memory: Shares, holder: Holder, characters: number, read: () => Soon<T>): Soon<T> {
  const amount = characters * answerReadTimes
  if (!memory.take(holder, amount)) {
    throw new RpcError('too_many', 'Too many answers to this caller are being looked into: try again', {
      headers: { 'retry-after': '1' },
    })
  }
  const giveBack = () => memory.giveBack(holder, amount)
  let isWaiting = false
  try {
    const result = read()
    if (!(result instanceof Promise)) return result
    isWaiting = true
    return result.finally(giveBack)
  } finally {
    if (!isWaiting) giveBack()
  }
}

/** What the reader of a stream is told when it must not go on. */
function whyOver(thrown: unknown): RpcError {
  return asRpcError(thrown) ?? new RpcError('unavailable', 'Whether this may go on cannot be told right now')
}

/** A connection that leads back here, through a proxy perhaps, would make thousands of requests of one. */
function loops({ id }: Message): RpcError {
  return new RpcError('loop', 'The connection leads back to this platform: point it to another server', { id })
}
