/** How answers look: the one table from error codes to statuses, and the body each operation gives an error. */

import { type ErrorCode, PlatformError } from '../errors.ts'

export const statusOf: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  policy_too_large: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
  upstream_unauthorized: 401,
  upstream_error: 502,
  upstream_timeout: 504,
}

const json = 'application/json'

/** Of lists and details: they differ by caller, so no shared cache may keep them. */
export const privateJson = {
  'content-type': json,
  'cache-control': 'private, no-cache',
  vary: 'authorization, origin',
} as const

/** Of what may be another thing the next time. */
export const freshJson = { 'content-type': json, 'cache-control': 'no-store' } as const

/** Of a stream of events. nginx would keep them until the stream ends. */
export const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const

/** An answer of ready JSON. */
export function jsonResponse(body: Uint8Array | string, headers: Record<string, string> = {}): Response {
  return new Response(body as ConstructorParameters<typeof Response>[0], {
    headers: { 'content-type': json, ...headers },
  })
}

/** Server details answer errors as `{error}` with a text (spec 7.2); everything else as `{error, message}`. */
export function errorResponse(path: string, error: PlatformError, headers: Record<string, string> = {}): Response {
  const isServer = path.startsWith('/servers/')
  const text = error.code === 'not_found' ? 'Server not found' : error.message
  const body = isServer ? { error: text } : { error: error.code, message: error.message }
  const status = statusOf[error.code]
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      'content-type': json,
      // What is refused or missing now may not be in a second: no cache may answer for us.
      'cache-control': 'no-store',
      ...(error.code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      // Common clients try a 409 again unless they are told.
      ...(error.code === 'conflict' && { 'x-should-retry': 'false' }),
      ...(error.retryAfter !== undefined && { 'retry-after': String(error.retryAfter) }),
      ...headers,
    },
  })
}

/** For whatever was thrown: its own answer, or a fixed text that tells nothing of the inside. */
export function asPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown
  return new PlatformError('internal', 'Something went wrong on our side; the log says what', { cause: thrown })
}
