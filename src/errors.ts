/**
 * What a caller can be told. A `PlatformError` is an answer: its message is written for the person
 * who sent the request. Every other throw is a bug: it is logged and answered with a fixed text.
 */

export type ErrorCode =
  | 'invalid_request'
  | 'policy_too_large'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'too_large'
  | 'rate_limited'
  | 'upstream_unauthorized'
  | 'upstream_error'
  | 'upstream_timeout'
  | 'unavailable'
  | 'internal'

export class PlatformError extends Error {
  override readonly name = 'PlatformError'
  readonly code: ErrorCode
  /** When to try again, seconds from now; of `rate_limited`. */
  readonly retryAfter: number | undefined

  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { readonly retryAfter?: number }) {
    super(message, options)
    this.code = code
    this.retryAfter = options?.retryAfter
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

/** What may be asked again when there is less in the namespace, and not before: no conflict, which clients try again at once. */
export function namespaceFull(namespace: string): PlatformError {
  const message = `The namespace ${namespace} holds as much as it may: delete connections, or ask the operator for more room`
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
