/** Sends a client's message to one connection (contract, 20.8): only ids, names and URIs are replaced in its bytes. */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { type ErrorCode, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { rpcErrorText } from '../../http/error-response.ts'
import { noStoreJson } from '../../http/respond.ts'
import { headerText, statelessHeaders, statelessMeta } from '../../model/mcp.ts'
import { fieldFinder } from '../../policy/rpc-match.ts'
import { type InsertMembers, type JsonPath, type ReplaceValue, replacingValues } from '../../schema/replace-values.ts'
import { isObject } from '../../schema/schema-keywords.ts'
import { textOf, utf8Of } from '../../storage/bytes.ts'
import type { AuthorizedCall } from '../gateway/authorized-call.ts'
import { askedAs } from '../gateway/connection-status.ts'
import { forward, sessionOwnerOf } from '../gateway/forward.ts'
import { isForwarded } from '../gateway/forwarded-headers.ts'
import type { Message } from '../gateway/message.ts'
import type { Rewrite } from '../gateway/relayed-stream.ts'
import type { Definition } from '../gateway/tool-requests.ts'
import type { CallProgress } from '../gateway/upstream-call.ts'
import { hashOf } from '../pins/pinned-definitions.ts'
import { nobody, passedCapabilities } from './client-session.ts'
import { enterEndpoint } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { accepted, type EndpointRequest } from './endpoint-request.ts'
import { changedKinds } from './list-changes.ts'
import { isResourceUri, listedUri } from './listed-uris.ts'

/** A connection that a client's message is for, and the message's name or URI in that connection's own words. */
export interface Target {
  readonly connection: AuthorizedConnection
  /** The revisions that its server speaks. */
  readonly era: Message['era']
  /** The place of the name or URI in the message, and the connection's own. Undefined for a message without one. */
  readonly named?: { readonly path: JsonPath; readonly own: string }
  /** Reads the tool's definition, where it is known, in the caller's time: it may have megabytes. Rejects with 429. */
  readonly definition?: () => Promise<Definition | undefined>
}

/** Sends a request or notification. Throws PlatformError; the state of a server is an answer (contract, 20.8). */
export async function sendCall(deps: EndpointDeps, asked: EndpointRequest, target: Target): Promise<Response> {
  const { message, owner } = asked
  const own = deps.underWay.send(owner, message.id, target.connection)
  // Not when it is answered: a stream may still be cancelled.
  allowanceOf(asked.context.request).atEnd(() => deps.underWay.end(owner, message.id, own))
  const call = callOf(deps, asked, target, JSON.stringify(own))
  try {
    const sent = await outgoing(asked, target, message.id === null ? undefined : own)
    const response = await forward(deps, call, sent.message, sent.headers)
    if (response.status < 400) return response
    // The endpoint's own statuses mean more than those of one of its servers: 404, for one, ends a session.
    const { headers, body } = response
    return new Response(body, { status: 200, headers })
  } catch (thrown) {
    return stateAnswer(thrown, message)
  }
}

/** Passes on a client's reply to a server's request; to nobody if there is no such request (contract, 20.8). */
export async function sendReply(deps: EndpointDeps, asked: EndpointRequest): Promise<Response> {
  const { message, owner, context } = asked
  const request = deps.underWay.asked(owner, message.id)
  if (request === undefined) return accepted()
  const connection = await deps.authorizer.requireConnection(context, 'execute', request.ref)
  if (serverOf(connection) !== request.server) return accepted()
  const call = callOf(deps, asked, { connection, era: 'handshake' }, '')
  const bytes = await replaced(context, message, (path) => (isPath(path, idPath) ? request.rawId : undefined))
  const own = clientHeaders(context)
  const sealed = request.sessionId && deps.sessions.seal(sessionOwnerOf(call), request.sessionId)
  if (sealed) own.set('mcp-session-id', sealed)
  const response = await forward(deps, call, { ...message, bytes, era: 'handshake' }, own)
  await response.body?.cancel()
  return accepted()
}

/** Tells the server that has a call that its client no longer waits for it. */
export async function sendCancellation(deps: EndpointDeps, asked: EndpointRequest): Promise<Response> {
  const { message, owner } = asked
  const { requestId } = (message.body['params'] ?? {}) as { requestId?: string | number }
  const sent = requestId === undefined ? undefined : deps.underWay.sent(owner, requestId)
  if (sent === undefined) return accepted()
  const connection = await deps.authorizer.requireConnection(asked.context, 'execute', sent.connection)
  // Another server has the connection's name by now.
  if (serverOf(connection) !== serverOf(sent.connection)) return accepted()
  const named = { path: ['params', 'requestId'], own: sent.id }
  await sendCall(deps, asked, { connection, era: message.era, named })
  return accepted()
}

const idPath: JsonPath = ['id']
const metaPath: JsonPath = ['params', '_meta']

/** The message in the connection's own words, in the revision that its server speaks. Rejects with 429. */
async function outgoing(
  { context, message }: EndpointRequest,
  { era, named, definition }: Target,
  id: string | undefined,
): Promise<{ readonly message: Message; readonly headers: Headers }> {
  const { method = '' } = message
  const isTranslated = era !== message.era
  const replace: ReplaceValue = (path) => {
    if (id !== undefined && isPath(path, idPath)) return JSON.stringify(id)
    if (named !== undefined && isPath(path, named.path)) return JSON.stringify(named.own)
    return isPath(path, metaPath) ? metaFor(message, era) : undefined
  }
  const params = (message.body['params'] ?? {}) as Record<string, unknown>
  const needsMeta = isTranslated && era === 'stateless' && !('_meta' in params)
  const insert = (path: JsonPath) =>
    needsMeta && isPath(path, ['params']) ? `"_meta":${JSON.stringify(statelessMeta)}` : undefined
  const bytes = await replaced(context, message, replace, insert)
  const body = named === undefined ? message.body : { ...message.body, params: withOwn(params, named) }
  const own = clientHeaders(context)
  if (era === 'stateless') {
    for (const [name, value] of Object.entries(statelessHeaders(method))) own.set(name, value)
    if (named !== undefined) own.set('mcp-name', headerText(named.own))
    for (const [name, value] of repeatedArguments(await definition?.(), params))
      own.set(`mcp-param-${name}`, headerText(value))
  }
  return { message: { ...message, bytes, body, era }, headers: own }
}

/** The message's parameters with the connection's own name: rules are asked about these. */
function withOwn(params: Readonly<Record<string, unknown>>, { path, own }: NonNullable<Target['named']>): object {
  const [, first = '', second] = path as string[]
  if (second === undefined) return { ...params, [first]: own }
  return { ...params, [first]: { ...(params[first] as object), [second]: own } }
}

const [versionKey, infoKey, capabilitiesKey] = Object.keys(statelessMeta) as [string, string, string]

/** The `_meta` of a request for a server of this era; undefined if it stays as it is. */
function metaFor(message: Message, era: Message['era']): string | undefined {
  const { _meta } = message.body['params'] as { _meta: Readonly<Record<string, unknown>> }
  if (era !== message.era) {
    const { [versionKey]: _, [infoKey]: __, [capabilitiesKey]: ___, ...rest } = _meta
    return JSON.stringify(era === 'stateless' ? { ...rest, ...statelessMeta } : rest)
  }
  if (era === 'handshake' || !(capabilitiesKey in _meta)) return undefined
  return JSON.stringify({ ..._meta, [capabilitiesKey]: passedCapabilities(_meta[capabilitiesKey]) })
}

/** The client's forwarded headers: none that names a session, or repeats the body, which is another by now. */
function clientHeaders({ request: { headers } }: RequestContext): Headers {
  const made = new Headers()
  for (const name of headers.keys())
    if (isForwarded(name, 'handshake') && name !== 'mcp-protocol-version') made.set(name, headers.get(name) ?? '')
  return made
}

/** Ours: arguments of a call that postern repeats in headers for a server. Past it: it repeats no others, and the server may refuse the call. */
const repeatedHeadersMax = 64
/** Ours: characters of an argument that postern repeats in a header; servers take heads of 8 to 16 kB. Past it: it is not repeated. */
const repeatedHeaderCharsMax = 4096

/** The arguments that a tool's schema wants repeated in headers (`x-mcp-header`), with their names there. */
export function repeatedArguments(
  definition: Definition | undefined,
  params: Readonly<Record<string, unknown>>,
): [string, string][] {
  const { properties: described } = (definition?.['inputSchema'] ?? {}) as { properties?: unknown }
  const properties = isObject(described) ? described : {}
  const given = (params['arguments'] ?? {}) as Readonly<Record<string, unknown>>
  const repeated = Object.entries(properties).flatMap(([property, schema]): [string, string][] => {
    const { 'x-mcp-header': name } = (schema ?? {}) as { 'x-mcp-header'?: unknown }
    const value = given[property]
    const isNamed = typeof name === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(name)
    return isNamed && ['string', 'number', 'boolean'].includes(typeof value) ? [[name, String(value)]] : []
  })
  return repeated.filter(([, value]) => value.length <= repeatedHeaderCharsMax).slice(0, repeatedHeadersMax)
}

function callOf(deps: EndpointDeps, asked: EndpointRequest, target: Target, rawId: string): AuthorizedCall {
  const { context, message, client } = asked
  const { connection, era } = target
  return {
    ...{ context, connection },
    endpoint: {
      ...{ via: asked.via, view: asked.view, ...(rawId !== '' && { rawId }) },
      // Across eras a server hears of no capabilities, so that it asks for nothing.
      client: era === message.era ? client : { ...nobody, sessionId: client.sessionId },
      rewrite: (progress) => rewriteOf(deps, asked, target, { rawId, progress }),
    },
    async renew() {
      const again = { ...asked, ...(await enterEndpoint(deps, context.request, true)) }
      const renewed = await deps.authorizer.requireConnection(again.context, 'execute', connection)
      return callOf(deps, again, { ...target, connection: renewed }, rawId)
    },
  }
}

const serverOf = ({ stored }: AuthorizedConnection) => hashOf(askedAs(stored))

/**
 * Rewrites the messages of a server as their client sees them. `rawId`: the JSON of the id under which the server has
 * the client's message.
 */
function rewriteOf(
  { underWay, kept }: EndpointDeps,
  { context, message, owner }: EndpointRequest,
  { connection, era }: Target,
  { rawId, progress }: { readonly rawId: string; readonly progress: CallProgress },
): Rewrite {
  const { namespace, connectionId, stored } = connection
  const isMocked = stored.connection.mock?.enabled === true
  const isTranslated = era === 'handshake' && message.era === 'stateless'
  const insert = (path: JsonPath) => (isTranslated && isPath(path, ['result']) ? modernMembers(message) : undefined)
  // Hashed once for all requests of a stream: a connection may have 64 kB of headers.
  let server: string | undefined

  const replacing = (): ReplaceValue => {
    let isNoted = false
    return (path, raw) => {
      // Once for each message, which may have the member many times.
      if (!isNoted && path.length === 1 && path[0] === 'method' && listChanges.has(raw)) {
        isNoted = true
        kept.noteChanged(context, connection)
      }
      if (path.length === 1 && isOtherSpelling(String(path[0])))
        throw new SyntaxError('An event must write id, method, result and error in lower case')
      if (path.length === 1 && path[0] === 'id') {
        // A mock asks for nothing, and answers the client's own id.
        if (raw === 'null' || raw === rawId || isMocked) return JSON.stringify(message.id)
        if (raw.length > askedIdCharsMax) throw new SyntaxError(`An id must have at most ${askedIdCharsMax} characters`)
        server ??= serverOf(connection)
        const { sessionId } = progress
        return JSON.stringify(underWay.ask(owner, { ref: { namespace, connectionId }, server, rawId: raw, sessionId }))
      }
      // Of this call, and not of one that another server has.
      if (isPath(path, progressPath)) return progressTokenOf(message)
      if (path[0] !== 'result' || !raw.startsWith('"') || raw.length > resultUriCharsMax) return undefined
      if (!isResourceUri(path, 1)) return undefined
      return JSON.stringify(listedUri(connectionId, JSON.parse(raw) as string))
    }
  }

  return async (data) => allowanceOf(context.request).parse(data.length, rewriting(data, replacing(), insert))
}

/** The data of an event with its replacements. Throws SyntaxError. */
function* rewriting(data: string, replace: ReplaceValue, insert: InsertMembers): Work<string> {
  // An event may carry only an id, without data.
  if (data === '') return data
  // In a batch (revision 2025-03-26) a server could answer the client's call of another server.
  if (!/^[ \t\r\n]*\{/.test(data)) throw new SyntaxError('An event must be one JSON-RPC message')
  return yield* replacingValues(data, replace, insert)
}

/** Ours: characters of a client's progress token at the endpoint of a namespace; a server may report thousands of times. Past it: the reports have none. */
const progressTokenCharsMax = 600
const progressPath = ['params', 'progressToken']

/** The token, as JSON, under which a client wants to hear of the progress of its call; `null` if it does not. */
function progressTokenOf({ body }: Message): string {
  const { progressToken = null } = ((body['params'] ?? {}) as { _meta?: { progressToken?: unknown } })._meta ?? {}
  const isLong = typeof progressToken === 'string' && progressToken.length > progressTokenCharsMax
  return JSON.stringify(isLong ? null : progressToken)
}

/** The notifications that a list of a server has changed, as JSON. */
const listChanges: ReadonlySet<string> = new Set(
  changedKinds.map((kind) => JSON.stringify(`notifications/${kind}/list_changed`)),
)

const tellingField = fieldFinder(['id', 'method', 'result', 'error'])

/** Some clients take `ID` for `id`, or `ſ` for `s`: then a server could answer the call of another one. */
function isOtherSpelling(name: string): boolean {
  const field = tellingField(name)
  return field !== undefined && field !== name
}

/** Ours: characters of the id, as JSON, of a request that a server sends to a client: postern seals this id, and the result must fit into the id of the client's reply. Past it: the answer is an error. */
const askedIdCharsMax = 600
/** Ours: characters of the JSON of a URI in a result. Past it: it is left as the server gave it, and cannot be read here. */
const resultUriCharsMax = 10_000

/** The members that a result has in revision 2026-07-28 and lacked before. */
function modernMembers({ method }: Message): string {
  const isCacheable = method === 'resources/read'
  return `"resultType":"complete"${isCacheable ? ',"cacheScope":"private","ttlMs":0' : ''}`
}

/** Errors that tell of a server, or of the state of its connection. */
const statesOfServers: readonly ErrorCode[] = [
  ...(['upstream_unauthorized', 'upstream_sign_in', 'input_required', 'upstream_error', 'upstream_timeout'] as const),
  'session_not_found',
]

/** The state of one server is no fault of the endpoint: it has status 200. Throws every other error. */
function stateAnswer(thrown: unknown, { id }: Message): Response {
  if (!(thrown instanceof PlatformError) || !statesOfServers.includes(thrown.code)) throw thrown
  return new Response(rpcErrorText(thrown, id), { status: 200, headers: noStoreJson })
}

/** The bytes of a message with replacements, in the caller's turns. */
async function replaced(
  { request }: RequestContext,
  { bytes }: Message,
  replace: ReplaceValue,
  insert?: InsertMembers,
): Promise<Uint8Array<ArrayBuffer>> {
  return utf8Of(await allowanceOf(request).run(replacingValues(textOf(bytes), replace, insert)))
}

export function isPath(path: JsonPath, wanted: JsonPath): boolean {
  if (path.length !== wanted.length) return false
  for (let at = 0; at < path.length; at += 1) if (path[at] !== wanted[at]) return false
  return true
}
