/**
 * What a caller can be told. A `PlatformError` is an answer: its message is written for the person
 * who sent the request. Every other throw is a bug: it is logged and answered with a fixed text.
 */

/**
 * Every error that a client is told of: its status, its code in JSON-RPC, and, where an operation that answers
 * `{error, message}` knows no such error, the one that it answers instead.
 */
export const errorTable = {
  /** JSON-RPC 2.0, 5.1: Invalid Request. */
  invalid_request: { status: 400, rpcCode: -32_600 },
  /** JSON-RPC 2.0, 5.1: Parse error. */
  parse_error: { status: 400, rpcCode: -32_700, rest: 'invalid_request' },
  policy_too_large: { status: 400, rpcCode: -32_600 },
  unauthorized: { status: 401, rpcCode: -32_001 },
  /** The upstream a connection wants authorization. */
  upstream_unauthorized: { status: 401, rpcCode: -32_001 },
  forbidden: { status: 403, rpcCode: -32_003 },
  not_found: { status: 404, rpcCode: -32_000 },
  /** An MCP client begins a new session when it is answered 404. */
  session_not_found: { status: 404, rpcCode: -32_001, rest: 'upstream_error' },
  method_not_allowed: { status: 405, rpcCode: -32_000 },
  conflict: { status: 409, rpcCode: -32_600 },
  /** The connection requires input. */
  input_required: { status: 409, rpcCode: -32_002, rest: 'conflict' },
  too_large: { status: 413, rpcCode: -32_600 },
  rate_limited: { status: 429, rpcCode: -32_000 },
  internal: { status: 500, rpcCode: -32_603 },
  upstream_error: { status: 502, rpcCode: -32_000 },
  unavailable: { status: 503, rpcCode: -32_000 },
  upstream_timeout: { status: 504, rpcCode: -32_000 },
  /** The connection leads back to this platform. */
  loop_detected: { status: 508, rpcCode: -32_000, rest: 'upstream_error' },
} as const satisfies Record<string, { status: number; rpcCode: number; rest?: string }>

export type ErrorCode = keyof typeof errorTable

/** The id of a JSON-RPC request; null for a notification, and where it could not be read. */
export type RpcId = string | number | null

export interface PlatformErrorOptions extends ErrorOptions {
  /** Seconds until it may be tried again. */
  readonly retryAfter?: number
  /** Of the answer, besides those that every answer of its kind has. */
  readonly headers?: Readonly<Record<string, string>>
  /** The same, where it is answered as JSON-RPC. */
  readonly rpcHeaders?: Readonly<Record<string, string>>
  /** Of the JSON-RPC request that failed. */
  readonly id?: RpcId
  /** `error.data` of JSON-RPC. */
  readonly data?: unknown
}

export class PlatformError extends Error {
  override readonly name = 'PlatformError'
  readonly code: ErrorCode
  readonly retryAfter: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly rpcHeaders: Readonly<Record<string, string>>
  readonly id: RpcId
  readonly data: unknown

  constructor(code: ErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.retryAfter = options.retryAfter
    this.headers = options.headers ?? {}
    this.rpcHeaders = options.rpcHeaders ?? {}
    this.id = options.id ?? null
    this.data = options.data
  }

  /** The same error, as the answer to the request of this id. */
  withId(id: RpcId): PlatformError {
    if (this.id === id) return this
    const { code, message, retryAfter, headers, rpcHeaders, data, cause } = this
    const wait = retryAfter === undefined ? {} : { retryAfter }
    return new PlatformError(code, message, { ...wait, headers, rpcHeaders, id, data, cause })
  }
}

export function rateLimited(what: string, retryAfter: number): PlatformError {
  return new PlatformError('rate_limited', `${what}; try again in ${retryAfter} s`, { retryAfter })
}

/** One wording for all of them: which of the many ways a credential failed is nobody's business. */
export function unauthorized(): PlatformError {
  return new PlatformError('unauthorized', 'The API key or token is missing or invalid')
}

/** The same bytes for what does not exist and for what the caller may not see (contract 4). */
export function notFound(): PlatformError {
  return new PlatformError('not_found', 'The resource was not found')
}

/**
 * What may be asked again when there is less in the namespace, and not before: no conflict, which clients try again
 * at once.
 */
export function namespaceFull(namespace: string): PlatformError {
  const message = `The namespace ${namespace} is full: delete connections, or ask the operator for more room`
  return new PlatformError('forbidden', message)
}

export interface Refusal {
  readonly block: number
  readonly field: string
  readonly path?: string
}

/** Where in the policy: `policy[1].rpcReqMatch.params.name`. */
export function constraintOf({ block, field, path }: Refusal): string {
  return `policy[${block}].${field}${path === undefined ? '' : `.${path}`}`
}

/** For something that the caller can see: says which constraint refused, so that its owner can tell why. */
export function forbidden(refusal: Refusal): PlatformError {
  return new PlatformError('forbidden', `The token does not allow this: ${constraintOf(refusal)}`)
}

export function invalidRequest(message: string): PlatformError {
  return new PlatformError('invalid_request', message)
}

/** What is there contradicts the request, and will the next time too. */
export function conflict(message: string): PlatformError {
  return new PlatformError('conflict', message)
}

/** A command could not do its work: one line for the person at the terminal, and an exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  /** 1: the work failed. 2: wrong usage. */
  readonly exitCode: 1 | 2

  constructor(message: string, exitCode: 1 | 2 = 1, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
