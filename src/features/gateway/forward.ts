/** Forwards one JSON-RPC message through a connection if the token's policy allows it (contract, 7.2 and 7.6). */

import { credentialIdOf } from '../../auth/authenticate.ts'
import { accessTo, isFresh, type RequestContext } from '../../auth/authorizer.ts'
import { isGrantedForAnother, isOfSignedInClient, madeAtOf } from '../../auth/grants.ts'
import { hasAuthorization, targetOf } from '../../auth/sealed-parts.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { forbidden, PlatformError, unauthorized } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Fairness } from '../../fairness/fairness.ts'
import { type RateLimit, rateNameOf } from '../../fairness/rate-limit.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { wholeResponse } from '../../http/respond.ts'
import { auditNameCharsMax } from '../../limits.ts'
import type { PinsSetting } from '../../model/pins.ts'
import type { Tracing } from '../../ops/tracing.ts'
import { type Access, type Decision, decideOnMessage } from '../../policy/decide.ts'
import { hasRpcRules, restrictsArguments } from '../../policy/tools.ts'
import { narrowTheSame } from '../../policy/view-policy.ts'
import { cutText } from '../../schema/cut-text.ts'
import { equalBytes } from '../../storage/bytes.ts'
import { StoreError } from '../../storage/store.ts'
import type { AnswerMock } from '../mocks/mocks.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/token-refresh.ts'
import type { AuthorizedCall } from './authorized-call.ts'
import type { RecordCall } from './call-record.ts'
import { askedAs, askedInShort, type RecordStatus } from './connection-status.ts'
import { filterTools } from './filter-tools.ts'
import { type Message, withoutAmbiguousParams } from './message.ts'
import type { WatchStream } from './open-streams.ts'
import {
  comparing,
  notAsked,
  type PinDeps,
  pinsFor,
  requireAccepted,
  requirePlain,
  requireSamePins,
} from './pinned-answers.ts'
import type { SendUpstream } from './proxy.ts'
import { errorsAsMessages, eventMemoryFactor, isEventStream, type Rewrite, rewriteAnswer } from './relayed-stream.ts'
import type { Sessions } from './sessions.ts'
import { type CallProgress, howToOpen } from './upstream-call.ts'

type Shared = Pick<SharedParts, 'store' | 'clock' | 'authorizer' | 'denials' | 'headersKey' | 'links' | 'sockets'>

export interface GatewayDeps extends Shared, PinDeps {
  readonly send: SendUpstream
  /** How long a server may take to answer a call that postern answers whole; `send` knows it for the head. */
  readonly upstreamTimeoutMs: number
  readonly recordStatus: RecordStatus
  /** Tokens of connections that somebody has signed in. */
  readonly credentials: UpstreamCredentials
  readonly sessions: Sessions
  readonly fairness: Fairness
  readonly answerMock: AnswerMock
  readonly watchStream: WatchStream
  /** Our name in `Via` (RFC 9110, 7.6.3). A request that already carries it is a loop. */
  readonly pseudonym: string
  /** Makes a span of each message; undefined if requests are not traced. */
  readonly tracing: Tracing | undefined
  /** Records calls of tools; undefined if they are not recorded. */
  readonly recordCall: RecordCall | undefined
  /** Calls a second of an API key with all its tokens. */
  readonly calls: RateLimit
}

/** A message with the headers that it was sent with, and how far it has come. */
interface Exchange {
  readonly message: Message
  readonly headers: Headers
  readonly progress: CallProgress
  /** As they were set when the message was allowed; `off` until then. */
  pins: PinsSetting
}

/** Authorizes a request by its credential and path, before the body is read. Throws 401, 404, 403. */
export async function authorizeCall(deps: GatewayDeps, request: Request, isRepeated = false): Promise<AuthorizedCall> {
  const context = await deps.authorizer.authenticate(request, isRepeated)
  const connection = await deps.authorizer.requireConnection(context, 'execute')
  const { token } = context.caller
  if (isOfSignedInClient(token)) {
    const namespace = await context.directory.namespace(connection.namespace)
    const madeAt = namespace && madeAtOf(namespace, connection.stored.connection)
    if (madeAt === undefined || (await isGrantedForAnother(context.directory, token, madeAt))) throw unauthorized()
  }
  return { context, connection, renew: () => authorizeCall(deps, request, true) }
}

/**
 * Authorizes a message again, by the view as it is now. Resolves with the call. Throws what `authorizeCall` and
 * `authorizeMessage` throw, and `upstream_error` if another server would be asked now, or the pins have come to block.
 */
async function requireUnchanged(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<AuthorizedCall> {
  const renewed = await authorizeMessage(deps, await call.renew(), exchange)
  await requireSamePins(deps, renewed, exchange)
  if (askedAs(renewed.connection.stored) === askedAs(call.connection.stored)) return renewed
  const { message, progress } = exchange
  const text = progress.isSent
    ? 'The answer is withheld, because the connection was changed meanwhile: its server may have executed the request'
    : 'The connection was changed meanwhile: send the request again'
  throw new PlatformError('upstream_error', text, { id: message.id })
}

/** Before a message is sent that waited, for a session or a token: the view and the pins may be others by then. */
async function requireStillAllowed(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<void> {
  const allowed = await requireUnchanged(deps, call, exchange)
  await requirePins(deps, allowed, exchange)
  // The pins may have waited for their owner's time.
  if (!isFresh(deps, allowed.context)) await requireUnchanged(deps, call, exchange)
}

/** The setting of the pins. Throws what `requireAccepted` throws, where it is `block`. */
async function requirePins(deps: GatewayDeps, call: AuthorizedCall, { message }: Exchange): Promise<PinsSetting> {
  const pins = await pinsFor(deps, call)
  if (pins === 'block' && message.method === 'tools/call') await requireAccepted(deps, call, message)
  return pins
}

/**
 * Evaluates the policy on the message, then answers from the mock or sends it upstream. Throws PlatformError: what
 * `authorizeMessage` throws, `input_required`, `upstream_error`, and what the mock and the proxy throw.
 */
export function forward(
  deps: GatewayDeps,
  call: AuthorizedCall,
  message: Message,
  headers: Headers,
): Promise<Response> {
  const { tracing, recordCall } = deps
  const send = (progress: CallProgress) => forwardAllowed(deps, call, { message, headers, progress, pins: 'off' })
  const isRecorded = recordCall !== undefined && message.method === 'tools/call'
  const work = () => (isRecorded ? recordCall(call, message, send) : send({ isSent: false, isAnswered: false }))
  if (tracing === undefined || message.method === undefined) return work()
  const { params } = message.body as { params?: { name?: unknown; _meta?: Record<string, unknown> } }
  // Spans wait for a collector, and a name may have a megabyte.
  const method = cutText(message.method, auditNameCharsMax)
  const isCall = method === 'tools/call' && typeof params?.name === 'string'
  const tool = isCall ? cutText(String(params.name), auditNameCharsMax) : undefined
  const options = {
    name: tool === undefined ? method : `${method} ${tool}`,
    kind: 'INTERNAL',
    attributes: { 'mcp.method.name': method, ...(tool !== undefined && { 'gen_ai.tool.name': tool }) },
    // MCP has the trace of a request in `_meta`: its sender knows it better than what sent the HTTP request.
    ...(params?._meta !== undefined && { given: params._meta }),
  } as const
  return tracing.span(options, work)
}

async function forwardAllowed(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<Response> {
  const { message, progress } = exchange
  const allowed = await authorizeMessage(deps, call, exchange)
  exchange.pins = await requirePins(deps, allowed, exchange)
  // Not before: a token that may call nothing does not keep its key from calling.
  const wait = message.method === 'tools/call' ? deps.calls.take(rateNameOf(call.context.caller)) : 0
  if (wait > 0) {
    const text = `This API key is calling tools too fast; try again in ${wait} s`
    throw new PlatformError('call_rate', text, { id: message.id, retryAfter: wait })
  }
  const isMocked = allowed.connection.stored.connection.mock?.enabled === true
  const response = await (isMocked ? answerFromMock : sendUpstream)(deps, allowed, exchange)
  progress.isAnswered = true
  try {
    // A mock may delay its answer, and an upstream may take its time. A caller that was revoked meanwhile receives
    // nothing of the result.
    if (!isFresh(deps, allowed.context)) await requireSamePins(deps, await allowed.renew(), exchange)
    return response
  } catch (thrown) {
    await response.body?.cancel()
    throw thrown
  }
}

/**
 * Requires that the token's policy allows the message. Resolves with the call as it was authorized last. Throws
 * `forbidden`, `loop_detected`, `rate_limited` if too many expensive policies of the caller wait to be evaluated, and
 * what `authorizeCall` throws.
 */
async function authorizeMessage(
  deps: GatewayDeps,
  call: AuthorizedCall,
  { message, headers }: Exchange,
): Promise<AuthorizedCall> {
  requireNoLoop(deps, call.context.request, message)
  for (let current = call; ; ) {
    const { caller } = current.context
    const access = {
      ...accessTo(current.connection, current.connection.stored, 'execute'),
      rpc: message.body,
      isReply: message.method === undefined && isOwnSession(deps, current, headers),
    }
    const deciding = deps.fairness.turns.run(caller, decideOnMessage(caller.blocks, access))
    const decision = deciding instanceof Promise ? await deciding : deciding
    // Time may have passed: postern evaluates an expensive policy in turns, and the endpoint of a namespace may have
    // waited for a list. If the connection (perhaps its URL) or the view has changed since, postern decides again.
    const fresh = isFresh(deps, current.context) ? current : await current.renew()
    const isUnchanged = isSameRecord(fresh, current) && narrowTheSame(fresh.endpoint?.view, current.endpoint?.view)
    current = fresh
    if (!isUnchanged) continue
    if (decision.allowed) return current
    throw refusalOf(deps, current.context, { access, decision }, message)
  }
}

/** Throws `loop_detected` for a request that this postern has sent, perhaps by a proxy: it would multiply endlessly. */
export function requireNoLoop({ pseudonym }: Pick<GatewayDeps, 'pseudonym'>, request: Request, { id }: Message): void {
  if (request.headers.get('via')?.includes(pseudonym) !== true) return
  const text = 'The connection leads back to this postern: point it to another server'
  throw new PlatformError('loop_detected', text, { id })
}

/** The error for a message that the policy does not allow. The audit log records it. */
export function refusalOf(
  { denials }: Pick<GatewayDeps, 'denials'>,
  { request, caller }: RequestContext,
  { access, decision }: { readonly access: Access; readonly decision: Decision & { readonly allowed: false } },
  { id }: Pick<Message, 'id'>,
): PlatformError {
  denials.recordPolicyDenial(request, caller, access, decision)
  return forbidden(decision).with({ id, rpcHeaders: notAsked })
}

/** Whether the client sent the id of a session that this caller opened through this connection. */
function isOwnSession({ sessions }: GatewayDeps, call: AuthorizedCall, headers: Headers): boolean {
  const sessionId = headers.get('mcp-session-id')
  return sessionId !== null && typeof sessions.unseal(sessionOwnerOf(call), sessionId) === 'object'
}

function isSameRecord({ connection: { stored: a } }: AuthorizedCall, { connection: { stored: b } }: AuthorizedCall) {
  return a === b || (equalBytes(a.bytes, b.bytes) && equalBytes(a.privateBytes, b.privateBytes ?? null))
}

/** How each message of the answer is rewritten. Undefined if the response is passed on unchanged. */
function rewriteOf(
  deps: GatewayDeps,
  call: AuthorizedCall,
  { message, progress, pins }: Exchange,
): Rewrite | undefined {
  const own = call.endpoint?.rewrite?.(progress)
  if (own !== undefined && pins === 'block')
    return async (data) => {
      if (data !== '') await requirePlain(call, data, call.endpoint?.rawId)
      return own(data)
    }
  if (call.endpoint !== undefined) return own
  const [compare, filter] = [comparing(deps, call, message, pins), toolFilter(call, message)]
  return compare && filter ? async (data) => filter(await compare(data)) : (compare ?? filter)
}

/** Removes hidden tools from `tools/list`. */
function toolFilter({ context: { caller, request } }: AuthorizedCall, message: Message): Rewrite | undefined {
  if (message.method !== 'tools/list' || !hasRpcRules(caller.blocks)) return undefined
  return async (data: string) => allowanceOf(request).parse(data.length, filterTools(data, caller.blocks))
}

async function answerFromMock(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<Response> {
  const { message, headers, progress } = exchange
  const { request, directory } = call.context
  const { connection, privatePart } = call.connection.stored
  const { id } = message
  const answer = await deps.answerMock({
    server: privatePart.server ?? '',
    scenario: connection.mock?.scenario ?? '',
    directory,
    message,
    headers,
    request,
  })
  if (answer === undefined) {
    throw new PlatformError(
      'upstream_error',
      'The server that this connection mocks is no longer registered: register it again',
      { id },
    )
  }
  const { status, headers: own, body } = answer
  const filter = rewriteOf(deps, call, exchange)
  let whole = body
  if (filter !== undefined) {
    // It waits for its place to be parsed.
    const letGo = allowanceOf(request).takeAnswer(body.length * eventMemoryFactor) // 429
    whole = await rewriteAnswer(body, own, errorsAsMessages(filter, id)).finally(letGo)
  }
  if (!isEventStream(own)) progress.body = whole
  return wholeResponse(request, whole, { status, headers: own }) // 429
}

async function sendUpstream(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<Response> {
  const { message, headers, progress } = exchange
  const { caller, request } = call.context
  const { namespace, connectionId, stored } = call.connection
  const { connection, privatePart } = stored
  const { status } = connection
  const { id } = message
  if (status.state === 'input_required') {
    const { http, missing, setupUrl } = status
    const options = { id, data: { http, missing }, setupUrl }
    const names = [...missing.headers, ...missing.query].join(', ')
    const message = `The connection needs values before it can be used (${names})${howToOpen(setupUrl)}`
    throw new PlatformError('input_required', message, options)
  }
  if (status.state === 'disconnected' || connection.transport === 'uplink' || connection.mcpUrl === null) {
    throw new PlatformError(
      'upstream_error',
      connection.transport === 'uplink'
        ? 'This connection is an uplink, which postern does not support: use a connection with a URL'
        : 'The connection is disconnected: test it in the console or with `postern connection test`, which contacts its server',
      { id },
    )
  }
  const ref = { namespace, connectionId }
  const { url, headers: connectionHeaders } = targetOf(stored, ref, deps.headersKey)
  const isSignedIn = privatePart.tokens !== undefined
  const credentials = isSignedIn ? await deps.credentials.of({ ref, stored, request }) : undefined
  // An upstream may be silent for longer than the server's idle timeout: the gateway's own timeouts apply instead. The
  // proxy restores it once only the client is waited for.
  const restoreIdleTimeout = deps.sockets.disableIdleTimeout(request)
  return deps.send({
    allowance: allowanceOf(request),
    progress,
    connection: call.connection,
    url,
    connectionHeaders,
    credentials,
    signInUrl: () => (hasAuthorization(connectionHeaders) ? undefined : deps.links.urlOf(ref)),
    isOfSignedInClient: isOfSignedInClient(caller.token),
    sessionOwner: sessionOwnerOf(call),
    holder: caller,
    memory: deps.fairness.memory,
    message,
    // If a rule constrains arguments, only `Mcp-Param-…` headers that match the checked arguments are forwarded.
    headers: restrictsArguments(caller.blocks) ? withoutAmbiguousParams(headers, message) : headers,
    via: request.headers.get('via') ?? undefined,
    signal: () => request.signal,
    rewrite: rewriteOf(deps, call, exchange),
    greeting: call.endpoint?.client,
    watchAccess: (end) =>
      deps.watchStream(
        () => renewIfPossible(deps, call, exchange),
        (why) => end(endOfStream(why)),
      ),
    requireAccess: () => (isFresh(deps, call.context) ? undefined : requireStillAllowed(deps, call, exchange)),
    onStatus: (status) => deps.recordStatus(ref, stored, status),
    restoreIdleTimeout,
  })
}

/**
 * Identifies the owner of a session: the connection in its present form (creation time, URL, headers, what was entered,
 * who signed in), the token or the API key used directly, and the client's session with the endpoint of a namespace.
 * Changing any of them ends the session: a server may know its caller by the session alone.
 */
export function sessionOwnerOf({ context: { caller }, connection, endpoint }: AuthorizedCall): string {
  const { namespace, connectionId, stored } = connection
  const owner = [`${namespace}/${connectionId}`, credentialIdOf(caller), askedInShort(stored)].join('\0')
  return endpoint === undefined ? owner : `${owner}\0${endpoint.client.sessionId}`
}

/**
 * Authorizes an open stream again. While a database cannot be asked, a stream goes on (contract, 16.11): it gives
 * nobody access who had none. The first answer after that counts again.
 */
async function renewIfPossible(deps: GatewayDeps, call: AuthorizedCall, exchange: Exchange): Promise<void> {
  try {
    await requireUnchanged(deps, call, exchange)
  } catch (error) {
    if (!(error instanceof StoreError && error.kind === 'unavailable')) throw error
  }
}

/** The error sent as the last event of a stream whose authorization failed. */
function endOfStream(thrown: unknown): PlatformError {
  const error = asPlatformError(thrown)
  return error.code === 'internal'
    ? new PlatformError(
        'unavailable',
        'postern cannot check right now whether this stream may continue, so it ends: open it again',
      )
    : error
}
