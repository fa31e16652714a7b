/**
 * `.tools` (contract, gateway): a connection's tools over plain HTTP, for callers that do not speak MCP. Each request
 * is translated into `tools/list` or `tools/call`, and the policy is evaluated on that. Errors are `{error, message}`.
 */

import { invalidRequest, notFound, PlatformError, rateLimited } from '../../errors.ts'
import { readJsonBody } from '../../http/body.ts'
import { pathSegments } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { freshJson, jsonResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import {
  parsedResponseMemoryFactor,
  rpcBodyBytesMax,
  rpcDepthMax,
  toolPagesMax,
  toolsCharsMax,
  toolsListedMax,
  upstreamBodyTimeoutMs,
} from '../../limits.ts'
import { rpcCodes, statelessRevision } from '../../model/mcp.ts'
import { version } from '../../version.ts'
import { parseWork } from './filter-tools.ts'
import { type AuthorizedCall, authorizeCall, forward, type GatewayDeps, reauthorize } from './forward.ts'
import type { Message } from './message.ts'
import { messagesOf } from './stream.ts'

interface Tool {
  readonly name: string
}

/**
 * `getTool` returns the tool of this name, or else the group of tools below it as `{tools}`, or else 404. Listing
 * throws `upstream_error` past `toolPagesMax`, `toolsCharsMax` or `toolsListedMax`, `upstream_timeout` past
 * `upstreamBodyTimeoutMs`, and `rate_limited` if the caller's share of memory is used up.
 */
export function toolHandlers(deps: GatewayDeps): Pick<Handlers, 'listTools' | 'getTool' | 'callTool'> {
  return {
    async listTools(request) {
      const call = await authorizeCall(deps, request) // 401, 404, 403
      refuseQuery(request.url) // 400
      return toolResponse({ tools: await list(call, () => true) })
    },

    async getTool(request) {
      const call = await authorizeCall(deps, request) // 401, 404, 403
      refuseQuery(request.url) // 400
      const name = toolNameOf(request)
      const found = await list(call, (one) => one.name === name || one.name.startsWith(`${name}.`))
      const tool = found.find((one) => one.name === name)
      if (tool !== undefined) return toolResponse(tool)
      if (found.length === 0) throw notFound() // 404
      return toolResponse({ tools: found })
    },

    async callTool(request) {
      const call = await authorizeCall(deps, request) // 401, 404, 403
      refuseQuery(request.url) // 400
      const { caller } = call.context
      const body = await readJsonBody(request, {
        bytesMax: rpcBodyBytesMax,
        depthMax: rpcDepthMax,
        tooLarge: () =>
          new PlatformError('too_large', `the body is too large: at most ${rpcBodyBytesMax} bytes are read`),
        inTurns: (work) => deps.turns.run(caller, work),
      }) // 400, 413
      const given = body ?? {}
      if (typeof given !== 'object' || Array.isArray(given)) {
        throw invalidRequest('the body must be an object: the tool’s arguments')
      }
      const params = { name: toolNameOf(request), arguments: given }
      const { result } = await ask(await reauthorize(deps, call), 'tools/call', params)
      return toolResponse(result)
    },
  }

  /** The wanted tools of all pages; the others are not kept in memory. */
  async function list(call: AuthorizedCall, isWanted: (tool: Tool) => boolean): Promise<Tool[]> {
    const { caller } = call.context
    const tools: Tool[] = []
    let characters = 0
    const until = performance.now() + upstreamBodyTimeoutMs
    let cursor: unknown
    try {
      for (let page = 0; page < toolPagesMax; page += 1) {
        if (performance.now() >= until)
          throw new PlatformError('upstream_timeout', 'The upstream: its list of tools took too long')
        const answer = await ask(call, 'tools/list', cursor === undefined ? {} : { cursor })
        const result = answer.result as { tools?: Tool[]; nextCursor?: unknown }
        if (!deps.memory.take(caller, answer.characters * parsedResponseMemoryFactor))
          throw rateLimited('Too many responses to this caller are being read', 1)
        characters += answer.characters
        if (characters > toolsCharsMax)
          throw upstreamError(`The upstream’s tool list is larger than ${toolsCharsMax} bytes`)
        if (!Array.isArray(result.tools)) throw upstreamError('The upstream does not speak MCP')
        for (const tool of result.tools) if (typeof tool?.name === 'string' && isWanted(tool)) tools.push(tool)
        if (tools.length > toolsListedMax) throw upstreamError(`The upstream has more than ${toolsListedMax} tools`)
        cursor = result.nextCursor
        // Some servers send an empty cursor with the last page.
        if (typeof cursor !== 'string' || cursor === '') return tools
      }
      // A list without its last pages would look complete.
      throw upstreamError(`The upstream’s tool list has more than ${toolPagesMax} pages`)
    } finally {
      deps.memory.giveBack(caller, characters * parsedResponseMemoryFactor)
    }
  }

  /**
   * Sends a request in the handshake era, and once more in the stateless era if the server supports only that. Throws
   * PlatformError; a JSON-RPC error of the upstream becomes `invalid_request` or `upstream_error`.
   */
  async function ask(call: AuthorizedCall, method: string, params: object): Promise<Asked> {
    const first = await answerTo(call, messageFor(method, params, 'handshake'), new Headers())
    const isTooOld = first.error?.code === rpcCodes.unsupportedRevision
    // The error says that the revision is unsupported, so nothing was executed and sending again is safe.
    const answer = isTooOld
      ? await answerTo(call, messageFor(method, params, 'stateless'), standardHeaders(method, params))
      : first
    // Some servers send `"error": null` with a result.
    if (answer.error !== undefined && answer.error !== null) {
      const { code, message } = answer.error
      const text = typeof message === 'string' ? message : 'the upstream returned an error without a message'
      throw code === rpcCodes.invalidParams ? invalidRequest(text) : upstreamError(text)
    }
    if (typeof answer.result !== 'object' || answer.result === null)
      throw upstreamError('The upstream does not speak MCP')
    return { result: answer.result, characters: answer.characters }
  }

  async function answerTo(
    call: AuthorizedCall,
    message: Message,
    headers: Headers,
  ): Promise<Answer & { readonly characters: number }> {
    const response = await forward(deps, call, message, headers)
    return firstAnswer(response, (text) => deps.turns.run(call.context.caller, parseWork(text)))
  }
}

/** The tool's name: the path after `.tools`, with `/` (also `%2F`) read as a dot. Throws 404 if it is empty. */
function toolNameOf(request: Request): string {
  const name = pathSegments(request.url).slice(3).join('.').replaceAll('/', '.')
  if (name === '') throw notFound()
  return name
}

function toolResponse(value: object): Response {
  return jsonResponse(JSON.stringify(value), freshJson)
}

/** Any constant will do: each upstream request carries one message, and its response comes back on it. */
const requestId = 1

function messageFor(method: string, params: object, era: Message['era']): Message {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': statelessRevision,
    'io.modelcontextprotocol/clientInfo': { name: 'postern', version },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const own = era === 'stateless' ? { ...params, _meta } : params
  const body = { jsonrpc: '2.0', id: requestId, method, params: own }
  return { body, bytes: new TextEncoder().encode(JSON.stringify(body)), method, id: requestId, era }
}

/** The headers that the stateless revision requires. */
function standardHeaders(method: string, params: object): Headers {
  const headers = new Headers({ 'mcp-protocol-version': statelessRevision, 'mcp-method': method })
  // Always as base64, since a name may contain any character.
  if ('name' in params) headers.set('mcp-name', `=?base64?${Buffer.from(String(params.name)).toString('base64')}?=`)
  return headers
}

/** A result, and the number of characters that were parsed for it. */
interface Asked {
  readonly result: object
  readonly characters: number
}

interface Answer {
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null
}

/**
 * The JSON-RPC response to our request: the whole body, or one event of a stream, in which notifications may precede
 * it. An error with a null id counts, because a server that could not read the id sends that. Throws PlatformError.
 */
async function firstAnswer(
  response: Response,
  read: (text: string) => Promise<unknown>,
): Promise<Answer & { readonly characters: number }> {
  let answer: Answer | undefined
  const take = (message: unknown) => {
    const { id, result, error } = (message ?? {}) as { id?: unknown } & Answer
    if ((id === requestId || id === null) && (result !== undefined || error !== undefined)) answer = message as Answer
    return answer !== undefined
  }
  const characters = await messagesOf(response, requestId, take, read)
  if (answer === undefined) throw upstreamError('The upstream does not speak MCP')
  return { ...answer, characters }
}

function upstreamError(message: string): PlatformError {
  return new PlatformError('upstream_error', message)
}
