/**
 * The errors that callers receive. The message of a `PlatformError` is written for the person who sent the request. Any
 * other exception, except a StoreError (app.ts), is a bug: it is logged, and the response is a 500 with a fixed text.
 */

/** Every error that a client can receive. `outsideRpc`: the one sent instead where the response is not JSON-RPC. */
export const errorTable = {
  /** JSON-RPC 2.0, 5.1: Invalid Request. */
  invalid_request: { status: 400, rpcCode: -32_600 },
  /** JSON-RPC 2.0, 5.1: Parse error. */
  parse_error: { status: 400, rpcCode: -32_700, outsideRpc: 'invalid_request' },
  policy_too_large: { status: 400, rpcCode: -32_600 },
  /** More connections than one answer joins. */
  too_many_connections: { status: 400, rpcCode: -32_600 },
  unauthorized: { status: 401, rpcCode: -32_001 },
  /** The connection's upstream requires authorization. */
  upstream_unauthorized: { status: 401, rpcCode: -32_001 },
  /** The same, for a client that signed in here: a 401 would send it to the wrong sign-in. */
  upstream_sign_in: { status: 403, rpcCode: -32_001, outsideRpc: 'upstream_unauthorized' },
  forbidden: { status: 403, rpcCode: -32_003 },
  not_found: { status: 404, rpcCode: -32_000 },
  /** An MCP client opens a new session on a 404. */
  session_not_found: { status: 404, rpcCode: -32_001, outsideRpc: 'upstream_error' },
  method_not_allowed: { status: 405, rpcCode: -32_000 },
  conflict: { status: 409, rpcCode: -32_600 },
  /** The connection requires input. */
  input_required: { status: 409, rpcCode: -32_002, outsideRpc: 'conflict' },
  too_large: { status: 413, rpcCode: -32_600 },
  rate_limited: { status: 429, rpcCode: -32_000 },
  /** Too many calls of tools a second (`--call-rate`). */
  call_rate: { status: 429, rpcCode: -32_029, outsideRpc: 'rate_limited' },
  internal: { status: 500, rpcCode: -32_603 },
  upstream_error: { status: 502, rpcCode: -32_000 },
  unavailable: { status: 503, rpcCode: -32_000 },
  /** Whether a write was done is not known: read before it is repeated. */
  outcome_unknown: { status: 503, rpcCode: -32_000 },
  upstream_timeout: { status: 504, rpcCode: -32_000 },
  /** The connection leads back to this platform. */
  loop_detected: { status: 508, rpcCode: -32_000, outsideRpc: 'upstream_error' },
} as const satisfies Record<string, { status: number; rpcCode: number; outsideRpc?: string }>

export type ErrorCode = keyof typeof errorTable

/** The id of a JSON-RPC request; null for a notification, or if the id could not be read. */
export type RpcId = string | number | null

export interface PlatformErrorOptions extends ErrorOptions {
  /** Seconds after which the client may retry; sent as `Retry-After`. */
  readonly retryAfter?: number
  /** Response headers, in addition to those that every error has. */
  readonly headers?: Readonly<Record<string, string>>
  /** Response headers of a JSON-RPC error only. */
  readonly rpcHeaders?: Readonly<Record<string, string>>
  /** The id of the JSON-RPC request that failed. */
  readonly id?: RpcId
  /** `error.data` of JSON-RPC. */
  readonly data?: unknown
  /** The constraint of the token that refused the request, for the record of calls. */
  readonly constraint?: string
  /** Where a person sets the connection up, or tries again; shown by errors that are not JSON-RPC. */
  readonly setupUrl?: string | undefined
}

/** An error that becomes the response. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError'
  readonly code: ErrorCode
  readonly options: PlatformErrorOptions

  constructor(code: ErrorCode, message: string, options: PlatformErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.options = options
  }

  /** The same error for another JSON-RPC request, or with a link for a person. */
  with(changed: Pick<PlatformErrorOptions, 'id' | 'setupUrl' | 'rpcHeaders'>): PlatformError {
    return new PlatformError(this.code, this.message, { ...this.options, ...changed })
  }
}

export function rateLimited(what: string, retryAfter: number): PlatformError {
  return new PlatformError('rate_limited', `${what}; try again in ${retryAfter} s`, { retryAfter })
}

/** One message for all reasons, so that it does not reveal why a credential was refused. */
export function unauthorized(): PlatformError {
  return new PlatformError('unauthorized', 'The API key or token is missing or invalid')
}

/** The text for a namespace that does not exist, or that the caller does not see. */
export const namespaceMissing = 'Namespace not found'

/** The same response for what does not exist and for what the caller may not see (contract, 4.4). */
export function notFound(message = 'The resource was not found'): PlatformError {
  return new PlatformError('not_found', message)
}

/** 403 and not 409: clients retry a conflict at once, which cannot help until connections have been deleted. */
export function namespaceFull(namespace: string): PlatformError {
  const message = `The namespace ${namespace} is full: delete connections or servers, or ask the operator for more room`
  return new PlatformError('forbidden', message)
}

/** 403 as for a namespace that is full. `most`: servers of one owner. */
export function ownerFull(namespace: string, most: number): PlatformError {
  const has = `has ${most} servers, as many as one owner may have`
  return new PlatformError('forbidden', `The owner of the namespace ${namespace} ${has}: delete some`)
}

/** The constraint that denied an access: the index of the block, its field, and the path for `rpcReqMatch`. */
export interface Refusal {
  readonly block: number
  /** The block's name, if it is not the token's. */
  readonly name?: string | undefined
  readonly field: string
  readonly path?: string
}

/** The place in the policy, such as `policy[1].rpcReqMatch.params.name`. */
export function constraintOf({ block, name = `policy[${block}]`, field, path }: Refusal): string {
  return `${name}.${field}${path === undefined ? '' : `.${path}`}`
}

/** For something that the caller can see. Names the constraint, so that the token's owner can find the reason. */
export function forbidden(refusal: Refusal): PlatformError {
  const constraint = constraintOf(refusal)
  // Each whole: people search the source for a message.
  const words =
    refusal.name === undefined
      ? `The token does not allow this: ${constraint}`
      : `The view does not allow this: ${constraint}`
  return new PlatformError('forbidden', words, { constraint })
}

export function invalidRequest(message: string): PlatformError {
  return new PlatformError('invalid_request', message)
}

/** The request contradicts the stored state; repeating it does not help. */
export function conflict(message: string): PlatformError {
  return new PlatformError('conflict', message)
}

/** A command failed: a message for the person at the terminal, and an exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  /** 1: the work failed. 2: wrong usage. */
  readonly exitCode: 1 | 2
  /** The error's code, for programs, and the status of a response that is the reason; 0 without one. */
  readonly code: string
  readonly status: number

  constructor(
    message: string,
    exitCode: 1 | 2 = 1,
    options: ErrorOptions & { readonly code?: string; readonly status?: number } = {},
  ) {
    super(message, options)
    this.exitCode = exitCode
    this.code = options.code ?? (exitCode === 2 ? 'usage' : 'error')
    this.status = options.status ?? 0
  }

  /** The same error in other words. */
  with(message: string): CommandError {
    const { exitCode, code, status } = this
    return new CommandError(message, exitCode, { code, status, cause: this })
  }

  /** As programs read it. */
  toJSON(): { error: string; message: string; status: number } {
    const { code, message, status } = this
    return { error: code, message, status }
  }
}
