/** Requests of our own to a connection's server, under the caller's policy: whole lists, or a call of a tool. */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { toolsCharsMax, upstreamBodyTimeoutMs } from '../../limits.ts'
import {
  chosenToolsMax,
  headerText,
  notMcp,
  rpcCodes,
  type ShownTool,
  statelessHeaders,
  statelessMeta,
  type ToolClaim,
} from '../../model/mcp.ts'
import { cutText, shorten } from '../../schema/cut-text.ts'
import { parsingExactly } from '../../schema/json.ts'
import { bytesPerCharacter, utf8Of } from '../../storage/bytes.ts'
import { within } from '../../within.ts'
import type { AuthorizedCall } from './authorized-call.ts'
import { isAnswerTo } from './call-outcome.ts'
import { parsingResponse } from './filter-tools.ts'
import { forward, type GatewayDeps, sessionOwnerOf } from './forward.ts'
import type { Message } from './message.ts'
import { readMessages } from './relayed-stream.ts'

/** Ours: pages of a server's tools that `.tools` reads. Past it: 502. */
export const toolPagesMax = 100
/** Ours: characters of the name of a tool or prompt, or of the URI of a resource, in a list that postern reads itself. Past it: the list cannot be read. */
const ownNameCharsMax = 4096
/** Ours: tools of one server in `.tools`. Past it: 502. */
export const toolsListedMax = 20_000

/** Time that the consent page waits for the server's list of tools. Past it: the names are typed. */
export const consentToolsTimeoutMs = 3000

/** Characters of a tool's description that the consent page shows. Past it: it is cut. */
const shownCharsMax = 160

/**
 * The tools behind a connection, for a person who chooses from them. Undefined if the server does not list them within
 * `consentToolsTimeoutMs`, or cannot, and if they are more than `chosenToolsMax`.
 */
export async function shownTools(
  deps: GatewayDeps,
  context: RequestContext,
  connection: AuthorizedConnection,
): Promise<ShownTool[] | undefined> {
  // The person was authenticated by a browser session just now, and is not asked again within this request.
  const call: AuthorizedCall = { context, connection, renew: async () => call }
  function* claims(page: readonly Definition[]): Work<ShownTool[]> {
    return page.map((one) => ({ name: String(one['name']), claims: [claimOf(one)] }))
  }
  const tools = listDefinitions(deps, call, 'tools', claims).then(
    ({ definitions }) => (definitions.length > chosenToolsMax ? undefined : definitions),
    () => undefined,
  )
  return within(consentToolsTimeoutMs, tools, () => undefined)
}

/** Risks of tools, the gravest first. */
export const risks: readonly string[] = ['may change or delete data', 'changes data, and deletes none', 'only reads']

/** `readOnlyHint` and `destructiveHint` (MCP, tool annotations): without them a tool may do everything. */
export function claimOf({ description, annotations }: Definition): ToolClaim {
  const text = typeof description === 'string' ? description.trim() : ''
  const { readOnlyHint, destructiveHint } = (annotations ?? {}) as Definition
  const [grave = '', mild = '', none = ''] = risks
  return {
    description: shorten(text, shownCharsMax),
    risk: readOnlyHint === true ? none : destructiveHint === false ? mild : grave,
  }
}

/** The lists of MCP: their methods, and the member that identifies a definition. */
export const listKinds = {
  tools: { method: 'tools/list', identifier: 'name' },
  prompts: { method: 'prompts/list', identifier: 'name' },
  resources: { method: 'resources/list', identifier: 'uri' },
  resourceTemplates: { method: 'resources/templates/list', identifier: 'uriTemplate' },
} as const
/** The member of the result that holds the list. */
export type ListKind = keyof typeof listKinds

/** An entry of a list, with the text that identifies it. */
export type Definition = Readonly<Record<string, unknown>>

/**
 * Reads all pages of a list, with the era that the server took for the last. `keep` makes texts of each page, because
 * its parsed form takes four times as much memory, and is let go with the page. Throws `upstream_error` past
 * `toolPagesMax`, `toolsCharsMax` or `toolsListedMax`, `upstream_timeout` past `upstreamBodyTimeoutMs`, and
 * `rate_limited` if the caller's share of memory is used up.
 */
export async function listDefinitions<T>(
  deps: GatewayDeps,
  call: AuthorizedCall,
  kind: ListKind,
  keep: (page: readonly Definition[]) => Work<readonly T[]>,
): Promise<{ readonly definitions: T[]; readonly era: Message['era'] }> {
  const { method, identifier } = listKinds[kind]
  const plural = kind === 'resourceTemplates' ? 'resource templates' : kind
  const allowance = allowanceOf(call.context.request)
  using kept = new DisposableStack()
  const found: T[] = []
  let characters = 0
  // A stream would end without a word of what is thrown while it is read.
  let problem: PlatformError | undefined
  function* keeping(answer: unknown): Work<unknown> {
    const { result } = (answer ?? {}) as { result?: Readonly<Record<string, unknown>> | null }
    const page = result?.[kind]
    if (!Array.isArray(page)) return answer
    const named = page.filter((one) => typeof one?.[identifier] === 'string')
    if (named.some((one) => one[identifier].length > ownNameCharsMax)) {
      const what = `${plural} whose ${identifier} is longer than ${ownNameCharsMax} characters`
      problem = upstreamError(`The MCP server has ${what}`)
      return { ...(answer as object), result: { [kind]: [] } }
    }
    return { ...(answer as object), result: { ...result, [kind]: yield* keep(named) } }
  }
  const until = performance.now() + upstreamBodyTimeoutMs
  let cursor: unknown
  for (let page = 0; page < toolPagesMax; page += 1) {
    if (performance.now() >= until)
      throw new PlatformError(
        'upstream_timeout',
        `The MCP server took longer than ${upstreamBodyTimeoutMs / 1000} s to list its tools`,
      )
    const answer = await ask(deps, call, method, cursor === undefined ? {} : { cursor }, keeping)
    if (problem !== undefined) throw problem
    const { [kind]: page, nextCursor } = answer.result as { [K in ListKind]?: T[] } & { nextCursor?: unknown }
    kept.defer(allowance.takeMemory(answer.characters * bytesPerCharacter)) // 429
    characters += answer.characters
    if (characters > toolsCharsMax)
      throw upstreamError(`The MCP server’s list of ${plural} is larger than ${toolsCharsMax} bytes`)
    if (!Array.isArray(page)) throw upstreamError(`The MCP server ${notMcp}`)
    for (const one of page) found.push(one)
    if (found.length > toolsListedMax) throw upstreamError(`The MCP server has more than ${toolsListedMax} ${plural}`)
    cursor = nextCursor
    // Some servers send an empty cursor with the last page.
    if (typeof cursor !== 'string' || cursor === '') return { definitions: found, era: answer.era }
  }
  // A list without its last pages would look complete.
  throw upstreamError(`The MCP server’s list of ${plural} has more than ${toolPagesMax} pages`)
}

/** Ours: characters of a server's own words that an error repeats. Past it: cut. */
const serverWordsCharsMax = 4096

/** Makes of an answer all that is kept of it, while its parsed form counts for the caller's memory. */
type Keep = (answer: unknown) => Work<unknown>

/**
 * Sends a request in the handshake era, and once more in the stateless era if the server supports only that. Resolves
 * with the result, the number of characters that were parsed for it, and the era that the server took. Throws
 * PlatformError; a JSON-RPC error of the upstream becomes `invalid_request` or `upstream_error`.
 */
export async function ask(
  deps: GatewayDeps,
  call: AuthorizedCall,
  method: string,
  params: object,
  keep?: Keep,
): Promise<{ readonly result: object; readonly characters: number; readonly era: Message['era'] }> {
  const send = (era: Message['era'], headers: Headers) =>
    answerTo(deps, call, { message: messageFor(method, params, era), headers, keep })
  const first = await send('handshake', new Headers()).catch((thrown) => {
    forgetUngreeted(deps, call)
    throw thrown
  })
  const isTooOld = first.error?.code === rpcCodes.unsupportedRevision
  if (first.error && !isTooOld) forgetUngreeted(deps, call)
  // The error says that the revision is unsupported, so nothing was executed and sending again is safe.
  const { result, error, characters } = isTooOld ? await send('stateless', standardHeaders(method, params)) : first
  // Some servers send `"error": null` with a result.
  if (error !== undefined && error !== null) {
    const text =
      typeof error.message === 'string'
        ? cutText(error.message, serverWordsCharsMax)
        : 'the MCP server returned an error without a message'
    if (error.code === rpcCodes.methodNotFound) throw new MissingMethod('upstream_error', text)
    throw error.code === rpcCodes.invalidParams ? invalidRequest(text) : upstreamError(text)
  }
  if (typeof result !== 'object' || result === null) throw upstreamError(`The MCP server ${notMcp}`)
  return { result, characters, era: isTooOld ? 'stateless' : 'handshake' }
}

/** A server that did not answer `initialize` may want it by now: the next request opens a session again. */
function forgetUngreeted({ sessions }: GatewayDeps, call: AuthorizedCall): void {
  const { keyId } = call.context.caller
  const owner = sessionOwnerOf(call)
  const session = sessions.opened(keyId, owner)
  if (session?.id === null && session.greeting === undefined) sessions.forget(keyId, owner, session)
}

/** The server does not know the method. */
export class MissingMethod extends PlatformError {}

/** A JSON-RPC response. */
interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null
}

/** The JSON-RPC response to our request: the whole body, or an event after notifications. Throws PlatformError. */
async function answerTo(
  deps: GatewayDeps,
  call: AuthorizedCall,
  { message, headers, keep }: { readonly message: Message; readonly headers: Headers; readonly keep: Keep | undefined },
): Promise<Answer & { readonly characters: number }> {
  const response = await forward(deps, call, message, headers)
  let answer: Answer | undefined
  const take = (received: unknown) => {
    const { result, error } = (received ?? {}) as Answer
    const isAnswer = isAnswerTo(requestId, received ?? {}) && (result !== undefined || error !== undefined)
    if (isAnswer) answer = received as Answer
    return answer !== undefined
  }
  const allowance = allowanceOf(call.context.request)
  const read = async (text: string) => allowance.parse(text.length, reading(text, keep))
  const owner = { holder: call.context.caller, memory: deps.fairness.memory, allowance }
  const timeoutMs = message.method === 'tools/call' ? deps.upstreamTimeoutMs : upstreamBodyTimeoutMs
  const characters = await readMessages(response, requestId, { take, read, owner, timeoutMs })
  if (answer === undefined) throw upstreamError(`The MCP server ${notMcp}`)
  return { ...answer, characters }
}

/** Results of tools and definitions are passed on with their digits. */
function* reading(text: string, keep: Keep | undefined): Work<unknown> {
  const received = yield* parsingResponse(text, parsingExactly)
  return keep === undefined ? received : yield* keep(received)
}

/** Any constant will do: each upstream request carries one message, and its response comes back on it. */
const requestId = 1

function messageFor(method: string, params: object, era: Message['era']): Message {
  const own = era === 'stateless' ? { ...params, _meta: statelessMeta } : params
  const body = { jsonrpc: '2.0', id: requestId, method, params: own }
  return { body, bytes: utf8Of(JSON.stringify(body)), method, id: requestId, era }
}

/** The headers that the stateless revision requires. */
function standardHeaders(method: string, params: object): Headers {
  const headers = new Headers(statelessHeaders(method))
  if ('name' in params) headers.set('mcp-name', headerText(String(params.name)))
  return headers
}

function upstreamError(message: string): PlatformError {
  return new PlatformError('upstream_error', message)
}
