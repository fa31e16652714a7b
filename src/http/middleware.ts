/**
 * Wraps every request and response: the guard, the request id, CORS headers, metrics, and the log line for a 500 or
 * 503. The framework's hooks would wrap each response body in a stream.
 */

import { randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { routedOperation } from '../fairness/allowance.ts'
import type { Log } from '../ops/log.ts'
import { PerRequest } from '../per-request.ts'
import { type Guard, preflight } from './guard.ts'
import type { Handler } from './handler.ts'
import { pathOf } from './path.ts'
import { refuseManyParameters } from './query.ts'
import { endUnreadChunks } from './respond.ts'
import { operationOf } from './route.ts'

/** Ours: announced bytes of a body that postern does not read because it refused the request; the runtime would still receive these bytes. Past it: after a 404, 413 or 429, postern closes the connection. It also closes the connection if it refused a request without reading its chunks. */
const unreadBodyBytesMax = 64 * 1024

/** While the store cannot be written, every request would log it. Within it: it is logged once. */
export const unavailableLogIntervalMs = 10_000
/** Functions of a stack trace in the log, innermost first; deeper ones belong to the framework. Past it: omitted. */
export const stackFunctionsShownMax = 8

interface MiddlewareOptions {
  readonly guard: Guard
  readonly log: Log
  /** Called for every response, with the seconds since the request arrived. */
  readonly observe?: ((operation: string, status: number, seconds: number) => void) | undefined
  readonly clock: Clock
}

type AnswerError = (request: Request, thrown: unknown) => Response

/** The fast lane, which answers before the router does and sets the request id itself; undefined if it cannot. */
type Respond = (request: Request, requestId: () => string) => Response | undefined | Promise<Response | undefined>

/** A client's `X-Request-Id` is used if it matches. */
const validId = /^[A-Za-z0-9._-]{1,64}$/

export type Middleware = ReturnType<typeof createMiddleware>

export function createMiddleware({ guard, log, observe, clock }: MiddlewareOptions) {
  // Not of what the fast lane answers: nothing happens after such a response.
  const ids = new PerRequest<string>()
  const errors = new PerRequest<unknown>()
  const prefix = randomBytes(5).toString('hex')
  let count = 0
  /** 503 is not logged before this time. */
  let quietUntil = 0

  function idOf(request: Request): string {
    const given = ids.get(request) ?? request.headers.get('x-request-id')
    if (given !== null && validId.test(given)) return given
    count += 1
    return `${prefix}-${count.toString(36)}`
  }

  /** The id of a request that is in progress. */
  function requestId(request: Request): string {
    const id = idOf(request)
    ids.set(request, id)
    return id
  }

  return {
    requestId,
    /** Records an internal error for the log line of the request. */
    noteError: (request: Request, thrown: unknown) => errors.set(request, thrown),
    /** Wraps the router. `answerError` makes the response for what the guard or the router throws. */
    wrap:
      (route: Handler, answerError: AnswerError, respond?: Respond): Handler =>
      (request) => {
        const started = clock.monotonic()
        let corsHeaders: Record<string, string> | undefined
        const finished = (response: Response) =>
          finish(request, endUnreadChunks(request, withHeaders(request, response, corsHeaders)), started)
        const failed = (thrown: unknown) => finished(answerError(request, thrown))
        const ordinary = () => {
          const early = corsHeaders === undefined ? undefined : preflight(request, corsHeaders)
          const answer = early ?? route(request)
          return answer instanceof Promise ? answer.then(finished, failed) : finished(answer)
        }
        try {
          corsHeaders = guard.check(request.headers, request.url)
          refuseManyParameters(request.url)
          // The router waits for the end of chunks that nobody reads.
          const isReady = corsHeaders === undefined && !request.headers.has('transfer-encoding')
          const ready = isReady ? respond?.(request, () => idOf(request)) : undefined
          if (ready === undefined) return ordinary()
          if (!(ready instanceof Promise)) return finish(request, ready, started)
          return ready
            .then((response) => (response === undefined ? ordinary() : finish(request, response, started)))
            .catch(failed)
        } catch (thrown) {
          return failed(thrown)
        }
      },
  }

  function withHeaders(request: Request, response: Response, corsHeaders = noHeaders): Response {
    // Remembered: a stream may be denied later, and its line in the audit log has the id that the client saw.
    response.headers.set('x-request-id', requestId(request))
    for (const [name, value] of Object.entries(corsHeaders)) {
      // The handler's own `Vary` includes `origin` already.
      if (name !== 'vary' || !response.headers.has(name)) response.headers.set(name, value)
    }
    return response
  }

  function finish(request: Request, response: Response, started: number): Response {
    const now = clock.monotonic()
    // 502 and 504 are failures of an upstream, and are visible in the connection's state and in the metrics.
    if (response.status === 500 || (response.status === 503 && now >= quietUntil)) {
      if (response.status === 503) quietUntil = now + unavailableLogIntervalMs
      log.error('request failed', {
        requestId: response.headers.get('x-request-id'),
        method: request.method,
        // Only the first segment of the path: the rest contains the caller's names.
        route: `/${pathOf(request.url).split('/', 2)[1] ?? ''}`,
        status: response.status,
        error: textOf(errors.get(request)),
        ...(response.status === 500 && { in: functionsOf(errors.get(request)) }),
      })
    }
    // Found for errors and metrics alone: it takes a tenth of the time of a page that is ready.
    if (response.status < 400 && observe === undefined) return response
    const operation = routedOperation(request) ?? operationOf(request.method, pathOf(request.url))
    // The runtime would go on receiving a body that nobody reads. Not for other errors: the close may overtake a body
    // that is still under way, and then the client sees no response.
    const isRefused = operation === undefined || response.status === 413 || response.status === 429
    const isLong = () => Number(request.headers.get('content-length')) > unreadBodyBytesMax
    const isUnread = response.status >= 400 && isRefused && !request.bodyUsed && isLong()
    // After CONNECT the runtime reads no further request, and a proxy would send somebody's next one.
    if (isUnread || request.method === 'CONNECT') response.headers.set('connection', 'close')
    observe?.(operation ?? 'other', response.status, (now - started) / 1000)
    return response
  }
}

const noHeaders: Readonly<Record<string, string>> = {}

/** The error as text, with its cause. */
function textOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const { name, message, cause } = thrown
  const why = cause instanceof Error && cause.message !== message ? ` (${cause.name}: ${cause.message})` : ''
  return `${name}: ${message}${why}`
}

/** Function names from the stack, innermost first. Line numbers are left out: in the bundle they are meaningless. */
function functionsOf(thrown: unknown): string | undefined {
  const { stack = '' } = thrown instanceof Error ? thrown : {}
  const names = [...stack.matchAll(/^ +at (?:async )?([\w$.#]+) \(/gm)].map(([, name]) => name)
  return names.length === 0 ? undefined : names.slice(0, stackFunctionsShownMax).join(' < ')
}
