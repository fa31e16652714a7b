/** `POST /connect/{namespace}/mcp`: all connections that the caller sees, as one server (contract, 20). */

import { isFresh } from '../../auth/authorizer.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { rpcCodes, unknownRevision } from '../../model/mcp.ts'
import { narrowTheSame } from '../../policy/view-policy.ts'
import { withChallenge } from '../gateway/mcp-handler.ts'
import { readMessage } from '../gateway/message.ts'
import { type ListKind, listKinds } from '../gateway/tool-requests.ts'
import { targetOfName, targetOfUri } from './called-name.ts'
import { clientGreetingCharsMax, clientOwnerOf, openClient, sealClient } from './client-session.ts'
import { sendCall, sendCancellation, sendReply, type Target } from './endpoint-call.ts'
import { enterEndpoint } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import {
  accepted,
  answer,
  type EndpointOptions,
  type EndpointRequest,
  optionsOf,
  requireAllowed,
  rpcError,
  unknown,
} from './endpoint-request.ts'
import { initializeResult } from './initialize.ts'
import { listing, type Shown, withShown } from './joined-lists.ts'
import { openSessionStream, openSubscription } from './list-stream.ts'
import { listedEntries } from './listed-entries.ts'
import { listNamespaceTools } from './namespace-tools.ts'
import { listRecipes } from './recipes.ts'
import { foundTarget, searchTools } from './search-tools.ts'
import { seenConnections } from './seen-connections.ts'
import { statusResult, statusTool } from './status-tool.ts'
import { callTools } from './tool-search.ts'

export const endpointHandlers = handlersOf({
  callNamespace: call,
  callView: call,
  listenNamespace: listen,
  listNamespaceTools,
  listRecipes,
  listenView: listen,
})

async function call(deps: EndpointDeps, request: Request): Promise<Response> {
  const first = await enterEndpoint(deps, request).catch(withChallenge(deps, request)) // 401, 429, 404, 403
  const given = readOptions(request.url) // 400
  const message = await readMessage(request) // 400, 413, 429
  if (message instanceof Response) return message // 400
  const entered = isFresh(deps, first.context) ? first : await enterEndpoint(deps, request, true) // 401, 404, 403
  const owner = clientOwnerOf(entered.context)
  const client = openClient(deps.sessionKey, owner, request.headers.get('mcp-session-id'))
  const options = optionsOf(given, entered.view)
  // Two sessions of one caller may use the same ids.
  const via = 'namespace'
  const session = { owner: `${owner}\0${client.sessionId}`, client }
  const asked = { ...entered, ...session, message, given, options, via } as const
  return unsupportedRevision(asked) ?? handle(deps, asked, owner)
}

/** The answer to a request of a revision that the endpoint does not speak: 400, with those that it speaks. */
function unsupportedRevision(asked: EndpointRequest): Response | undefined {
  const unknownOne = unknownRevision(asked.message, asked.context.request.headers)
  const text = 'This endpoint does not speak this revision of MCP: use one of data.supported'
  return unknownOne && rpcError(asked, rpcCodes.unsupportedRevision, text, unknownOne)
}

async function listen(deps: EndpointDeps, request: Request): Promise<Response> {
  const entered = await enterEndpoint(deps, request).catch(withChallenge(deps, request)) // 401, 429, 404, 403
  return openSessionStream(deps, { ...entered, given: readOptions(request.url) }) // 400, 404, 429
}

/** Throws `invalid_request`. */
function readOptions(url: string): EndpointOptions {
  const query = readQuery(url, ['names', 'status', 'tools'])
  const only = (name: string, value: string) => {
    const given = query.get(name)
    if (given !== undefined && given !== value) throw invalidRequest(`${name}: must be ${value}, or left out`)
    return given !== undefined
  }
  return {
    length: only('names', '64') ? 64 : 46,
    hasStatus: only('status', 'tool'),
    isSearch: only('tools', 'search'),
  }
}

const listOf = new Map<string, ListKind>(
  Object.entries(listKinds).map(([kind, { method }]) => [method, kind as ListKind]),
)

async function handle(deps: EndpointDeps, asked: EndpointRequest, owner: string): Promise<Response> {
  const { message } = asked
  const { method, id } = message
  if (method === undefined) return sendReply(deps, asked)
  const params = (message.body['params'] ?? {}) as Readonly<Record<string, unknown>>
  if (id === null) {
    if (method === 'tools/call') throw invalidRequest('id: is required to call a tool here')
    await requireAllowed(deps, asked)
    return method === 'notifications/cancelled' ? sendCancellation(deps, asked) : accepted()
  }
  if (params['task'] !== undefined) return rpcError(asked, rpcCodes.invalidParams, 'params.task: is not supported here')
  if (method === 'tools/call') return callTool(deps, asked, String(params['name']))
  if (method === 'subscriptions/listen' && message.era === 'stateless') return openSubscription(deps, asked)
  const target = await targetOf(deps, asked, method, params)
  if (target instanceof Response) return target
  if (target !== undefined) return sendCall(deps, asked, target)
  await requireAllowed(deps, asked) // 403
  const kind = listOf.get(method)
  if (kind !== undefined) return answered(deps, asked, (now) => list(deps, now, kind, params))
  const isHandshake = message.era === 'handshake'
  if (method === 'ping' && isHandshake) return answer(asked, {})
  if ((method === 'initialize' && isHandshake) || method === 'server/discover')
    return answered(deps, asked, (now) => greet(deps, now, owner, params))
  return rpcError(asked, rpcCodes.methodNotFound, `This endpoint does not answer ${method}`)
}

async function callTool(deps: EndpointDeps, asked: EndpointRequest, name: string): Promise<Response> {
  if (asked.options.hasStatus && name === statusTool.name) {
    // Asked as for a list, which it is.
    await requireAllowed(deps, asked, { ...asked.message.body, method: 'tools/list', params: {} }) // 403
    const { request } = asked.context
    return answered(deps, asked, async (now) =>
      answer(now, await withShown(deps, now, (all) => allowanceOf(request).run(statusResult(all)))),
    ) // 400, 429
  }
  if (asked.options.isSearch && name === 'search_tools') return answered(deps, asked, (now) => searchTools(deps, now))
  const as = callTools.find((one) => one === name)
  const found = await answered(deps, asked, async (now) => {
    if (asked.options.isSearch && as !== undefined) return foundTarget(deps, now, as)
    const target = await targetOfName(deps, now, { kind: 'tools', name, path: ['params', 'name'] })
    if (target instanceof Response) return target
    return target === undefined ? unknown(now, 'tool', name) : { asked: now, target }
  }) // 401, 404, 403, 400, 429
  return found instanceof Response ? found : sendCall(deps, found.asked, found.target)
}

/** The connection that another request names, if it names one; an answer if the name is unknown, or missing. */
async function targetOf(
  deps: EndpointDeps,
  asked: EndpointRequest,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<Target | Response | undefined> {
  const isReference = method === 'completion/complete'
  if (!isReference && method !== 'prompts/get' && method !== 'resources/read') return undefined
  const holder = (isReference ? (params['ref'] ?? {}) : params) as Readonly<Record<string, unknown>>
  const isPrompt = isReference ? holder['type'] === 'ref/prompt' : method === 'prompts/get'
  const member = isPrompt ? 'name' : 'uri'
  const path = isReference ? ['params', 'ref', member] : ['params', member]
  const given = holder[member]
  if (typeof given !== 'string') return rpcError(asked, rpcCodes.invalidParams, `${path.join('.')}: must be a string`)
  const target = isPrompt
    ? await targetOfName(deps, asked, { kind: 'prompts', name: given, path })
    : await targetOfUri(deps, asked, { uri: given, path })
  return target ?? unknown(asked, isPrompt ? 'prompt' : 'resource', given)
}

/**
 * An answer that may wait for servers: meanwhile the caller may lose access, or the view may come to show less, for
 * which it is made again. Something else than an answer is given as it is: it is authorized when it is sent. Throws as
 * `enterEndpoint`, and what `make` throws.
 */
async function answered<T = never>(
  deps: EndpointDeps,
  asked: EndpointRequest,
  make: (now: EndpointRequest) => Promise<Response | T>,
): Promise<Response | T> {
  const response = await make(asked)
  if (!(response instanceof Response)) return response
  const entered = await enterEndpoint(deps, asked.context.request, true) // 401, 404, 403
  return narrowTheSame(entered.view, asked.view) ? response : answered(deps, { ...asked, ...entered }, make)
}

async function list(
  deps: EndpointDeps,
  asked: EndpointRequest,
  kind: ListKind,
  params: Readonly<Record<string, unknown>>,
): Promise<Response> {
  // There is one page, so no cursor was ever given.
  if (params['cursor'] !== undefined) return rpcError(asked, rpcCodes.invalidParams, 'params.cursor: is not valid here')
  const make = (all: readonly Shown[]) => allowanceOf(asked.context.request).run(making(all, kind, asked))
  return answer(asked, await deps.joinedAnswer(asked, kind, () => withShown(deps, asked, make))) // 400, 429
}

function* making(all: readonly Shown[], kind: ListKind, asked: EndpointRequest): Work<string> {
  const { joined, own } = yield* listedEntries(all, kind, asked)
  return yield* listing(kind, joined, { isStateless: asked.message.era === 'stateless', own })
}

/** Milliseconds of a greeting, beside those of its connections. Counted against `ownerTimeShare`. Past it: it waits. */
const greetMs = 0.5

async function greet(
  deps: EndpointDeps,
  asked: EndpointRequest,
  owner: string,
  { capabilities, clientInfo }: Readonly<Record<string, unknown>>,
): Promise<Response> {
  const { context, namespace } = asked
  await allowanceOf(context.request).pace(greetMs)
  // No server is asked, and the instructions of more connections than a list joins are left out.
  const refs = (await seenConnections(deps.store, context, namespace.namespace)) ?? []
  const response = await deps.kept.use(context, refs, false, (listed) => answer(asked, initializeResult(asked, listed)))
  if (asked.message.method !== 'initialize') return response
  const sessionId = sealClient(deps.sessionKey, owner, capabilities, clientInfo)
  if (sessionId === undefined) {
    const text = `params: capabilities and clientInfo have more than ${clientGreetingCharsMax} characters`
    return rpcError(asked, rpcCodes.invalidParams, text)
  }
  response.headers.set('mcp-session-id', sessionId)
  return response
}
