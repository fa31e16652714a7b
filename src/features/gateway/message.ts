/**
 * Parses a JSON-RPC message, once and strictly. Input that two parsers could read differently is rejected, because the
 * policy is evaluated on our reading and the upstream acts on its own. The bytes parsed here are the bytes sent
 * upstream.
 */

import { isUtf8 } from 'node:buffer'
import { PlatformError, type RpcId } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { bodyTooLarge, isJson, readBytes } from '../../http/body.ts'
import { rpcErrorBody } from '../../http/error-response.ts'
import { noStoreJson } from '../../http/respond.ts'
import { replyIdCharsMax, rpcDepthMax, rpcIdCharsMax, rpcKeysMax, rpcValuesMax } from '../../limits.ts'
import { handshakeRevisions, namedBy, namingParameters, rpcCodes } from '../../model/mcp.ts'
import { fieldFinder, lettersOf, lettersOfAll } from '../../policy/rpc-match.ts'
import { canonicalBytes } from '../../schema/base64.ts'
import { bodyProblemText } from '../../schema/check.ts'
import { hasAtMostValues } from '../../schema/count-values.ts'
import { type JsonBounds, parsing } from '../../schema/json.ts'
import { isObject } from '../../schema/schema-keywords.ts'

export interface Message {
  /** The request body exactly as received. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly body: Readonly<Record<string, unknown>>
  /** Undefined for a reply: the client's response to a request of the server. */
  readonly method: string | undefined
  /** Null for a notification. */
  readonly id: RpcId
  /** `handshake`: up to 2025-11-25, with `initialize` and sessions. `stateless`: 2026-07-28. */
  readonly era: 'handshake' | 'stateless'
}

/**
 * Reads the message of a request, and parses it in turns. Resolves with a 400 response if its headers contradict its
 * body. Throws PlatformError (400, 413, 429).
 */
export async function readMessage(request: Request): Promise<Message | Response> {
  const bytes = await readBytes(request, bodyTooLarge)
  const { headers } = request
  if (!isJson(headers.get('content-type'))) {
    throw new PlatformError('parse_error', 'content-type: must be application/json')
  }
  const allowance = allowanceOf(request)
  const message = await allowance.run(parsingMessage(bytes, allowance))
  if (isPlainlyHandshake(message, headers)) return message
  const era = await eraOf(message, headers)
  return era instanceof Response ? era : { ...message, era }
}

/** Parses a body, as work in steps. Its era is `handshake` until `eraOf` has decided. Throws PlatformError. */
export function* parsingMessage(
  bytes: Uint8Array<ArrayBuffer>,
  owner?: JsonBounds['owner'],
): Generator<number, Message> {
  // `marked`: a number that parsers may read differently (one of 20 digits, say) becomes NaN in our copy, so that no
  // rule is evaluated on a value that the upstream may not see. The upstream receives the original text.
  const bounds = { depthMax: rpcDepthMax, keysMax: rpcKeysMax, valuesMax: rpcValuesMax }
  const read = yield* parsing(bytes, { ...bounds, numbers: 'marked', owner })
  if ('problem' in read) throw new PlatformError('parse_error', bodyProblemText(read.problem))
  const { value } = read
  if (Array.isArray(value))
    throw new PlatformError('invalid_request', 'batches are not supported: send each message in its own request')
  if (typeof value !== 'object' || value === null)
    throw new PlatformError('invalid_request', 'the body must be a JSON-RPC object')
  const body = value as Record<string, unknown>
  const { jsonrpc, method, id } = body
  // Errors repeat the id if it is a valid one, so that the client can match them to its request.
  const isReply = !('method' in body)
  const idCharsMax = isReply ? replyIdCharsMax : rpcIdCharsMax
  const isLong = typeof id === 'string' && id.length > idCharsMax
  const readable = (typeof id === 'string' && !isLong) || (typeof id === 'number' && Number.isFinite(id)) ? id : null
  const not = (what: string) => new PlatformError('invalid_request', what, { id: readable })
  if (jsonrpc !== '2.0') throw not('jsonrpc: must be "2.0"')
  if (typeof id === 'number' && readable === null) throw not(`id: ${inexactId}`)
  if (isLong) throw not(`id: has more than ${idCharsMax} characters`)
  if ('id' in body && readable === null) throw not('id: must be a string or a number')
  if (isReply && (readable === null || 'result' in body === 'error' in body)) {
    throw not('not a JSON-RPC request, notification or response')
  }
  if (!isReply && typeof method !== 'string') throw not('method: must be a string')
  if (typeof method === 'string' && method.length > methodCharsMax)
    throw not(`method: has more than ${methodCharsMax} characters`)
  if (typeof method === 'string' && method.includes('\0')) throw not('method: has a NUL, where some servers end it')
  if (!isReply && ('result' in body || 'error' in body)) throw not('a request carries no result and no error')
  const params = body['params']
  const variant = variantIn(body, fieldOfRpc) ?? variantIn(params, fieldOfParams)
  const lookalike = variant === undefined ? punctuationProblem(body) : lookalikeOf(variant)
  if (lookalike !== undefined) throw not(lookalike)
  if (params !== undefined && (typeof params !== 'object' || params === null)) throw not('params: must be an object')
  if (isReply) return { bytes, body, method: undefined, id: readable, era: 'handshake' }
  const problem = callProblem(method as string, params) ?? describedProblem(params)
  if (problem !== undefined) throw not(problem)
  return { bytes, body, method: method as string, id: readable, era: 'handshake' }
}

/**
 * The problem with a message that a lenient server would take for a call of a tool, but that is none here, or names no
 * tool: postern would not record it, or not as a call.
 */
function callProblem(method: string, params: unknown): string | undefined {
  if (method !== callMethod)
    return lettersOf(method) === callLetters ? `method: must be written ${callMethod}` : undefined
  if (Array.isArray(params)) return 'params: must be an object'
  return typeof (params as { name?: unknown } | undefined)?.name === 'string'
    ? undefined
    : 'params.name: must be a string'
}

/** Ours: values in each of `_meta`, `capabilities` and `clientInfo` of a request, which have tens; the official package validates them in one piece. Past it: 400, -32600. */
const describedValuesMax = 1000
const describing = ['_meta', 'capabilities', 'clientInfo'] as const

/** The problem with what a client says of itself and of its request. */
function describedProblem(params: unknown): string | undefined {
  const long = describing.find((name) => {
    const value = (params as Readonly<Record<string, unknown>> | undefined)?.[name]
    return !hasAtMostValues(value, describedValuesMax)
  })
  return long && `params.${long}: has more than ${describedValuesMax} values`
}

/** Ours: characters of a message's method; those of MCP have at most 40, and each rule of a policy may ask for it. Past it: 400, -32600. */
const methodCharsMax = 256

const callMethod = 'tools/call'
const callLetters = lettersOf(callMethod)

/** Said of a number that another parser, or the client itself, may read as another one. */
const inexactId = 'the number has more digits than postern keeps exactly: send a string, or a smaller number'

/** The fields that determine what a message does. */
const rpcFields = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']
const fieldOfRpc = fieldFinder(rpcFields)
const fieldOfParams = fieldFinder(['name', 'uri', 'arguments', '_meta'])

/** The field that another key of the object may be taken for: Go's parser ignores case, and some in C end at a NUL. */
function variantIn(object: unknown, fieldOf: (key: string) => string | undefined): string | undefined {
  if (!isObject(object)) return undefined
  for (const key of Object.keys(object)) {
    const field = fieldOf(key)
    if (field !== undefined && field !== key) return field
  }
  return undefined
}

const lookalikeOf = (field: string) =>
  `${field}: another key differs from it only in case, width, punctuation or after a NUL`

/** Characters of a key that some reader takes for another one, because of its punctuation. Past it: it is none. */
const punctuatedKeyCharsMax = 64
/** Ours: keys of at most 64 characters that a message has besides those of JSON-RPC; an ordinary message has none. Past it: 400, -32600. */
const otherKeysMax = 1000

/** Some readers take `_method` for `method`. Not so within `params`, where `meta` is not `_meta`. */
function punctuationProblem(body: Readonly<Record<string, unknown>>): string | undefined {
  const others = Object.keys(body).filter((key) => key.length <= punctuatedKeyCharsMax && !rpcFields.includes(key))
  if (others.length === 0) return undefined
  // Together: to normalize thousands of them takes a tenth of a second.
  const letters = others.length > otherKeysMax ? undefined : lettersOfAll(others)
  if (letters === undefined) return 'the message has too many keys besides those of JSON-RPC'
  const read = new Set(letters.values())
  const field = rpcFields.find((one) => read.has(one))
  return field && lookalikeOf(field)
}

/** Imported on first use, as most processes never need it. Kept: even a repeated `import()` takes ten microseconds. */
let official: typeof import('@modelcontextprotocol/server') | undefined

/** The era of a request; a 400 response if headers and body contradict each other, or a required header is missing. */
export async function eraOf(message: Message, headers: Headers): Promise<Message['era'] | Response> {
  official ??= await import('@modelcontextprotocol/server')
  const protocolVersionHeader = headers.get('mcp-protocol-version') ?? undefined
  const mcpMethodHeader = headers.get('mcp-method') ?? undefined
  const mcpNameHeader = headers.get('mcp-name') ?? undefined
  const outcome = official.classifyInboundRequest({
    httpMethod: 'POST',
    body: message.body,
    ...(protocolVersionHeader !== undefined && { protocolVersionHeader }),
    ...(mcpMethodHeader !== undefined && { mcpMethodHeader }),
    ...(mcpNameHeader !== undefined && { mcpNameHeader }),
  })
  if (outcome.kind === 'legacy') return 'handshake'
  const refused = (status: number, code: number, text: string, data?: unknown) =>
    new Response(rpcErrorBody(code, text, message.id, data), { status, headers: noStoreJson })
  if (outcome.kind === 'reject') return refused(outcome.httpStatus, outcome.code, outcome.message, outcome.data)
  const problem = nameProblem(message, mcpMethodHeader, mcpNameHeader) ?? paramProblem(message, headers)
  return problem === undefined ? 'stateless' : refused(400, rpcCodes.headerMismatch, problem)
}

/** Nothing in the request refers to the stateless revision, so the headers cannot contradict the body. */
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

/** Intermediaries may route or decide by these headers, so they must agree with the body (MCP 2026-07-28). */
function nameProblem({ method = '', body, id }: Message, mcpMethod?: string, mcpName?: string): string | undefined {
  if (id !== null && mcpMethod === undefined) return 'Mcp-Method: is missing'
  const parameter = namingParameters.get(method)
  if (parameter === undefined) return mcpName === undefined ? undefined : `Mcp-Name: does not belong to ${method}`
  if (mcpName === undefined) return 'Mcp-Name: is missing'
  return namedBy(method, body['params']) === plainValue(mcpName)
    ? undefined
    : `Mcp-Name: is not params.${parameter} of the body`
}

/**
 * Decodes `=?base64?…?=`, the form of header values that are not plain ASCII text. Anything that two decoders could
 * read differently is no value of the body: it stays as it is, and is null if it has other bytes.
 */
function plainValue(header: string): string | null {
  if (!/^[\x20-\x7e]*$/.test(header)) return null
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(header) ?? []
  const bytes = encoded === undefined ? undefined : canonicalBytes(encoded, 'base64')
  return bytes !== undefined && isUtf8(bytes) ? bytes.toString() : header
}

const paramPrefix = 'mcp-param-'

/** `Mcp-Param-…` must equal one of the arguments: only the tool's schema, which is not read here, states which. */
function paramProblem({ body }: Message, headers: Headers): string | undefined {
  const names = [...headers.keys()].filter((name) => name.startsWith(paramPrefix))
  if (names.length === 0) return undefined
  const given = argumentTexts(body)
  if (given === undefined) return `${names[0]}: the arguments have more than ${repeatedArgumentsMax} values`
  const texts = new Set<string | null>(given.map(([, text]) => text))
  const stranger = names.find((name) => !texts.has(plainValue(headers.get(name) ?? '')))
  return stranger === undefined ? undefined : `${stranger}: is not an argument of the body`
}

/**
 * The headers without any `Mcp-Param-…` but those that repeat the one value that arguments of that name have. Needed if
 * a policy has rules on arguments: a server that trusts such a header could act on another value than the one that the
 * rule was evaluated on, such as that of an argument of the same name inside another.
 */
export function withoutAmbiguousParams(headers: Headers, { body }: Message): Headers {
  const named = [...headers.keys()].filter((name) => name.startsWith(paramPrefix))
  if (named.length === 0) return headers
  const texts = argumentTexts(body) ?? []
  // Each key is normalized once: one long key may have a list of many values.
  const letters = lettersOfAll(new Set(texts.map(([key]) => key)))
  const given = new Map<string, Set<string | null>>()
  if (letters !== undefined)
    for (const [key, text] of texts) given.getOrInsertComputed(letters.get(key) ?? '', () => new Set()).add(text)
  const kept = new Headers(headers)
  for (const name of named) {
    const value = plainValue(headers.get(name) ?? '')
    const values = given.get(lettersOf(name.slice(paramPrefix.length)))
    if (values === undefined || values.size > 1 || !values.has(value)) kept.delete(name)
  }
  return kept
}

/** Ours: values in the arguments of a call whose request has headers `Mcp-Param-…`. Past it: 400, or postern does not pass these headers on. */
const repeatedArgumentsMax = 2000

/** The scalars in a call's arguments, as texts, each with its nearest key; undefined past `repeatedArgumentsMax`. */
function argumentTexts(body: Message['body']): (readonly [key: string, text: string])[] | undefined {
  const { arguments: given } = (body['params'] ?? {}) as { arguments?: unknown }
  const texts: (readonly [string, string])[] = []
  let looked = 0
  const collect = (value: unknown, key: string) => {
    looked += 1
    if (looked > repeatedArgumentsMax) return
    if (Array.isArray(value)) for (const part of value.slice(0, repeatedArgumentsMax)) collect(part, key)
    else if (typeof value === 'object' && value !== null) {
      for (const [name, part] of Object.entries(value).slice(0, repeatedArgumentsMax)) collect(part, name)
    } else texts.push([key, typeof value === 'string' ? value : JSON.stringify(value)])
  }
  collect(given, '')
  return looked > repeatedArgumentsMax ? undefined : texts
}
