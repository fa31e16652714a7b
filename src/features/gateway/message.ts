/**
 * A JSON-RPC message, read once and strictly: what two readers could understand differently is refused, and the very
 * bytes that were read here are those that go upstream.
 */

import { PlatformError, type RpcId } from '../../errors.ts'
import { isJson, readBytes } from '../../http/body.ts'
import { rpcErrorBody } from '../../http/error-response.ts'
import { freshJson } from '../../http/respond.ts'
import { rpcBodyBytesMax, rpcDepthMax, rpcKeysMax, rpcValuesMax } from '../../limits.ts'
import { handshakeRevisions, namedBy, namingParameters, rpcCodes } from '../../model/mcp.ts'
import { foldCase } from '../../policy/rpc-match.ts'
import { bodyProblemText } from '../../schema/check.ts'
import { reading, readJsonBytes } from '../../schema/json.ts'

export interface Message {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly body: Readonly<Record<string, unknown>>
  /** Undefined for a client's reply to a request of the server. */
  readonly method: string | undefined
  /** Null for a notification. */
  readonly id: RpcId
  /** `handshake`: up to 2025-11-25, with `initialize` and sessions. `stateless`: 2026-07-28. */
  readonly era: 'handshake' | 'stateless'
}

/** `inTurns` reads a large one when it is its turn. Throws PlatformError. */
export async function readMessage(
  request: Request,
  inTurns: (work: Generator<number, Message>) => Promise<Message>,
): Promise<Message> {
  const tooLarge = () =>
    new PlatformError('too_large', `the body is too large: at most ${rpcBodyBytesMax} bytes are read`)
  const bytes = await readBytes(request, rpcBodyBytesMax, tooLarge)
  if (!isJson(request.headers.get('content-type'))) {
    throw new PlatformError('parse_error', 'content-type: must be application/json')
  }
  return inTurns(reading(bytes.length, () => messageOf(bytes)))
}

/** The text itself goes on, so a number that others may read as another one is not taken for any. */
const rpcJsonBounds = {
  depthMax: rpcDepthMax,
  keysMax: rpcKeysMax,
  valuesMax: rpcValuesMax,
  numbers: 'marked',
} as const

/** Throws PlatformError. */
export function messageOf(bytes: Uint8Array<ArrayBuffer>): Message {
  const read = readJsonBytes(bytes, rpcJsonBounds)
  if ('problem' in read) {
    throw new PlatformError('parse_error', bodyProblemText(read.problem))
  }
  const { value } = read
  if (Array.isArray(value))
    throw new PlatformError('invalid_request', 'batches are not supported: send each message in a request of its own')
  if (typeof value !== 'object' || value === null)
    throw new PlatformError('invalid_request', 'the body must be a JSON-RPC object')
  const body = value as Record<string, unknown>
  const { jsonrpc, method, id } = body
  const readable = typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id)) ? id : null
  const not = (what: string) => new PlatformError('invalid_request', what, { id: readable })
  if (jsonrpc !== '2.0') throw not('jsonrpc: must be "2.0"')
  if ('id' in body && readable === null) throw not('id: must be a string or a number')
  const isReply = !('method' in body)
  if (isReply && (readable === null || 'result' in body === 'error' in body)) {
    throw not('not a JSON-RPC request, notification or response')
  }
  if (!isReply && typeof method !== 'string') throw not('method: must be a string')
  if (!isReply && ('result' in body || 'error' in body)) throw not('a request carries no result and no error')
  const params = body['params']
  const caseVariant = caseVariantIn(body, fieldsOfRpc) ?? caseVariantIn(params, fieldsOfParams)
  if (caseVariant !== undefined) throw not(`${caseVariant}: differs only in case from a field of MCP`)
  if (params !== undefined && (typeof params !== 'object' || params === null)) {
    throw not('params: must be an object')
  }
  return { bytes, body, method: method as string | undefined, id: readable, era: 'handshake' }
}

/** What decides what is called. */
const fieldsOfRpc = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
const fieldsOfParams = new Set(['name', 'uri', 'arguments', '_meta'])

/** Every letter of a name is there, and in the widest alphabets each is two characters of ours. */
const caseVariantChars = 2 * Math.max(...[...fieldsOfRpc, ...fieldsOfParams].map((name) => name.length))

/** Some readers take keys in any case for the same: theirs would be another message than ours. */
function caseVariantIn(object: unknown, fields: ReadonlySet<string>): string | undefined {
  if (typeof object !== 'object' || object === null) return undefined
  for (const key of Object.keys(object)) {
    if (key.length <= caseVariantChars && !fields.has(key) && fields.has(foldCase(key))) return key
  }
  return undefined
}

/**
 * Of which era the request is; an answer where its headers do not agree with its body, or one that is required is
 * missing.
 */
export function protocolEra(message: Message, headers: Headers): Promise<Message['era'] | Response> | 'handshake' {
  return isPlainlyHandshake(message, headers) ? 'handshake' : classify(message, headers)
}

async function classify(message: Message, headers: Headers): Promise<Message['era'] | Response> {
  // Read when the first call comes: nobody who only lists pays for it.
  official ??= await import('@modelcontextprotocol/server')
  const { classifyInboundRequest } = official
  const header = (name: string) => headers.get(name) ?? undefined
  const [protocolVersionHeader, mcpMethodHeader, mcpNameHeader] = [
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
  ].map(header)
  const outcome = classifyInboundRequest({
    httpMethod: 'POST',
    body: message.body,
    ...(protocolVersionHeader !== undefined && { protocolVersionHeader }),
    ...(mcpMethodHeader !== undefined && { mcpMethodHeader }),
    ...(mcpNameHeader !== undefined && { mcpNameHeader }),
  })
  if (outcome.kind === 'legacy') return 'handshake'
  const refused = (status: number, code: number, text: string, data?: unknown) =>
    new Response(rpcErrorBody(code, text, message.id, data), { status, headers: freshJson })
  if (outcome.kind === 'reject') return refused(outcome.httpStatus, outcome.code, outcome.message, outcome.data)
  const problem = nameProblem(message, mcpMethodHeader, mcpNameHeader) ?? paramProblem(message, headers)
  return problem === undefined ? 'stateless' : refused(400, rpcCodes.headerMismatch, problem)
}

/** Nothing in it speaks of the newer revision, so there is nothing that could disagree. */
function isPlainlyHandshake({ body }: Message, headers: Headers): boolean {
  const revision = headers.get('mcp-protocol-version')
  const params = body['params'] as object | undefined
  return (
    (revision === null || handshakeRevisions.has(revision)) &&
    !headers.has('mcp-method') &&
    !headers.has('mcp-name') &&
    (params === undefined || !Object.hasOwn(params, '_meta'))
  )
}

/** An import that was made before costs ten microseconds each time. */
let official: typeof import('@modelcontextprotocol/server') | undefined

/** A proxy on the way may decide by the headers; what they say must be what the body says. */
function nameProblem({ method = '', body, id }: Message, mcpMethod?: string, mcpName?: string): string | undefined {
  if (id !== null && mcpMethod === undefined) return 'Mcp-Method: is missing'
  const parameter = namingParameters.get(method)
  if (parameter === undefined) return mcpName === undefined ? undefined : `Mcp-Name: does not belong to ${method}`
  if (mcpName === undefined) return 'Mcp-Name: is missing'
  return namedBy(method, body['params']) === plainValue(mcpName)
    ? undefined
    : `Mcp-Name: is not params.${parameter} of the body`
}

/** Header values that are no plain text come as `=?base64?…?=`. */
function plainValue(header: string): string {
  const [, encoded] = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(header) ?? []
  return encoded === undefined ? header : Buffer.from(encoded, 'base64').toString()
}

const paramPrefix = 'mcp-param-'

/** `Mcp-Param-…` repeats an argument; which one only the tool's schema says, so it must be one of them. */
function paramProblem({ body }: Message, headers: Headers): string | undefined {
  const names = [...headers.keys()].filter((name) => name.startsWith(paramPrefix))
  if (names.length === 0) return undefined
  const texts = new Set(argumentTexts(body).map(([, text]) => text))
  const stranger = names.find((name) => !texts.has(plainValue(headers.get(name) ?? '')))
  return stranger === undefined ? undefined : `${stranger}: is not an argument of the body`
}

/**
 * The headers without each `Mcp-Param-…` that does not bear the name of the argument it repeats. Where a rule speaks of
 * arguments, a server that believes such a header could be told another one than the rule was asked of.
 */
export function withoutRenamedParams(headers: Headers, { body }: Message): Headers {
  const named = [...headers.keys()].filter((name) => name.startsWith(paramPrefix))
  if (named.length === 0) return headers
  const given = textsByName(body)
  const kept = new Headers(headers)
  for (const name of named) {
    const value = plainValue(headers.get(name) ?? '')
    if (given.get(lettersOf(name.slice(paramPrefix.length)))?.has(value) !== true) kept.delete(name)
  }
  return kept
}

/** Each key is looked at once: a hundred thousand texts may stand in a list below a long one. */
function textsByName(body: Message['body']): ReadonlyMap<string, ReadonlySet<string>> {
  const byName = new Map<string, Set<string>>()
  const byKey = new Map<string, Set<string>>()
  for (const [key, text] of argumentTexts(body)) {
    let texts = byKey.get(key)
    if (texts === undefined) {
      const name = lettersOf(key)
      texts = byName.get(name) ?? new Set()
      byName.set(name, texts)
      byKey.set(key, texts)
    }
    texts.add(text)
  }
  return byName
}

/** `tenantId`, `tenant_id` and `Tenant-Id` are the same name. */
function lettersOf(name: string): string {
  return foldCase(name).replace(/[^\p{L}\p{N}]/gu, '')
}

/** The texts among a call's arguments, at any depth, each with its key. */
function argumentTexts(body: Message['body']): (readonly [key: string, text: string])[] {
  const { arguments: given } = (body['params'] ?? {}) as { arguments?: unknown }
  const texts: (readonly [string, string])[] = []
  const collect = (value: unknown, key: string) => {
    if (typeof value === 'object' && value !== null) {
      for (const [name, part] of Object.entries(value)) collect(part, Array.isArray(value) ? key : name)
    } else texts.push([key, typeof value === 'string' ? value : JSON.stringify(value)])
  }
  collect(given, '')
  return texts
}
