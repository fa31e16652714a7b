/**
 * What every request passes on its way in and out: the guard, a request id, CORS headers, the measure of it.
 * The framework's own hooks for this would wrap each answer's body in a stream.
 */

import { randomBytes } from 'node:crypto'
import { stackFunctionsShownMax, unavailableLogIntervalMs } from '../limits.ts'
import type { Log } from '../ops/log.ts'
import type { Guard } from './guard.ts'
import { pathOf } from './path.ts'
import { operationOf } from './route.ts'
import type { Handler } from './router.ts'

export interface MiddlewareOptions {
  readonly guard: Guard
  readonly log: Log
  /** Told of every answer. */
  readonly observe?: ((operation: string, status: number, seconds: number) => void) | undefined
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
}

export interface Middleware {
  /**
   * Around the router. `respond` may have the answer already, with this id among its headers; `answerError` answers
   * what the guard or the router throws.
   */
  wrap(
    route: Handler,
    answerError: (request: Request, thrown: unknown) => Response,
    respond?: (request: Request, requestId: () => string) => Response | undefined,
  ): Handler
  /** The id of a request that is being answered. */
  requestId(request: Request): string
  /** Notes what went wrong on our side, for the log line of the request. */
  noteError(request: Request, thrown: unknown): void
}

/** A client's own id is kept where it is like this. */
const validId = /^[A-Za-z0-9._-]{1,64}$/

export function createMiddleware({ guard, log, observe, monotonic }: MiddlewareOptions): Middleware {
  // Only of requests that somebody asked about: most are answered before anyone needs to know.
  const ids = new WeakMap<Request, string>()
  const errors = new WeakMap<Request, unknown>()
  const prefix = randomBytes(5).toString('hex')
  let count = 0
  let quietUntil = 0

  function newId(request: Request): string {
    const given = request.headers.get('x-request-id')
    if (given !== null && validId.test(given)) return given
    count += 1
    return `${prefix}-${count.toString(36)}`
  }

  const idOf = (request: Request): string => ids.get(request) ?? newId(request)

  function requestId(request: Request): string {
    const id = idOf(request)
    ids.set(request, id)
    return id
  }

  return {
    requestId,
    noteError: (request, thrown) => void errors.set(request, thrown),
    wrap: (route, answerError, respond) => (request) => {
      const started = monotonic()
      let corsHeaders: Record<string, string> | undefined
      let answer: Response | Promise<Response>
      try {
        corsHeaders = guard.check(request.headers)
        const ready = corsHeaders === undefined ? respond?.(request, () => idOf(request)) : undefined
        if (ready !== undefined) return finish(request, ready, started)
        const preflight = corsHeaders === undefined ? undefined : guard.preflight(request, corsHeaders)
        answer = preflight ?? route(request)
      } catch (thrown) {
        answer = answerError(request, thrown)
      }
      const finished = (response: Response) => finish(request, withHeaders(request, response, corsHeaders), started)
      if (!(answer instanceof Promise)) return finished(answer)
      return answer.then(finished, (thrown) => finished(answerError(request, thrown)))
    },
  }

  function withHeaders(request: Request, response: Response, corsHeaders = noHeaders): Response {
    response.headers.set('x-request-id', idOf(request))
    for (const [name, value] of Object.entries(corsHeaders)) {
      // It may be there already, and says more then.
      if (name !== 'vary' || !response.headers.has(name)) response.headers.set(name, value)
    }
    return response
  }

  function finish(request: Request, response: Response, started: number): Response {
    const now = monotonic()
    // 502 and 504 are an upstream's: the connection's state and the metrics tell of them.
    if (response.status === 500 || (response.status === 503 && now >= quietUntil)) {
      if (response.status === 503) quietUntil = now + unavailableLogIntervalMs
      log.error('request failed', {
        requestId: response.headers.get('x-request-id'),
        method: request.method,
        route: `/${areaOf(request)}`,
        status: response.status,
        error: textOf(errors.get(request)),
        ...(response.status === 500 && { in: functionsOf(errors.get(request)) }),
      })
    }
    observe?.(operationOf(request.method, pathOf(request.url)) ?? 'other', response.status, (now - started) / 1000)
    return response
  }
}

const noHeaders: Readonly<Record<string, string>> = {}

/** The first part of the path only: the rest names things of the caller's. */
function areaOf(request: Request): string {
  return pathOf(request.url).split('/', 2)[1] ?? ''
}

/** With what it came from. */
function textOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const { name, message, cause } = thrown
  const why = cause instanceof Error && cause.message !== message ? ` (${cause.name}: ${cause.message})` : ''
  return `${name}: ${message}${why}`
}

/** Where a bug is: names of functions, innermost first. Places in a bundle say nothing to anybody. */
function functionsOf(thrown: unknown): string | undefined {
  const { stack = '' } = thrown instanceof Error ? thrown : {}
  const names = [...stack.matchAll(/^ +at (?:async )?([\w$.#]+) \(/gm)].map(([, name]) => name)
  return names.length === 0 ? undefined : names.slice(0, stackFunctionsShownMax).join(' < ')
}
