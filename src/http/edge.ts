/**
 * What every request passes on its way in and out: the guard, a request id, CORS headers, the measure of it.
 * The framework's own hooks for this would wrap each answer's body in a stream.
 */

import { unavailableLoggedEveryMs } from '../limits.ts'
import type { Log } from '../log.ts'
import type { Soon } from '../model/soon.ts'
import type { Guard } from './guard.ts'
import { pathOf } from './path.ts'

export type Fetch = (request: Request) => Soon<Response>

export interface EdgeOptions {
  readonly guard: Guard
  readonly log: Log
  /** Told of every answer. */
  readonly observe?: ((operation: string, status: number, seconds: number) => void) | undefined
}

export interface Edge {
  /**
   * An answer of what is ready; its id is put among `headers`, which are lent. Set on the answer afterwards, it would
   * cost a busy server two microseconds.
   */
  ready(request: Request, body: Uint8Array<ArrayBuffer> | Blob | null, headers: Headers, status?: number): Response
  /** Around the routes; `refuse` answers what the guard or a route throws. */
  around(handle: Fetch, refuse: (request: Request, thrown: unknown) => Response): Fetch
  /** The id of a request that is being answered. */
  requestId(request: Request): string
  /** Notes what went wrong on our side, for the log line of the request. */
  fault(request: Request, thrown: unknown): void
}

const saneId = /^[A-Za-z0-9._-]{1,64}$/

export function createEdge({ guard, log, observe }: EdgeOptions): Edge {
  // Only of requests that somebody asked about: most are answered before anyone needs to know.
  const ids = new WeakMap<Request, string>()
  const faults = new WeakMap<Request, unknown>()
  const prefix = Math.random().toString(36).slice(2, 10)
  let count = 0
  let quietUntil = 0
  /** The last answer that had its id when it was made. */
  let named: Response | undefined

  function newId(request: Request): string {
    const given = request.headers.get('x-request-id')
    if (given !== null && saneId.test(given)) return given
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
    ready(request, body, headers, status = 200) {
      headers.set('x-request-id', idOf(request))
      named = new Response(body, { status, headers })
      return named
    },
    requestId,
    fault: (request, thrown) => void faults.set(request, thrown),
    around: (handle, refuse) => (request) => {
      const started = performance.now()
      let corsHeaders: Record<string, string> | undefined
      let answer: Soon<Response>
      try {
        corsHeaders = guard.check(request.headers)
        const preflight = corsHeaders === undefined ? undefined : guard.preflight(request, corsHeaders)
        answer = preflight ?? handle(request)
      } catch (thrown) {
        answer = refuse(request, thrown)
      }
      if (!(answer instanceof Promise)) return finish(request, answer, corsHeaders, started)
      return answer.then(
        (response) => finish(request, response, corsHeaders, started),
        (thrown) => finish(request, refuse(request, thrown), corsHeaders, started),
      )
    },
  }

  function finish(
    request: Request,
    response: Response,
    corsHeaders: Record<string, string> | undefined,
    started: number,
  ): Response {
    if (response !== named) response.headers.set('x-request-id', idOf(request))
    if (corsHeaders !== undefined) addHeaders(response.headers, corsHeaders)
    // 502 and 504 are an upstream's: the connection's state and the metrics tell of them.
    if (response.status === 500 || (response.status === 503 && started >= quietUntil)) {
      if (response.status === 503) quietUntil = started + unavailableLoggedEveryMs
      log.error('request failed', {
        requestId: response.headers.get('x-request-id'),
        method: request.method,
        route: `/${areaOf(request)}`,
        status: response.status,
        error: textOf(faults.get(request)),
        ...(response.status === 500 && { in: functionsOf(faults.get(request)) }),
      })
    }
    observe?.(operationOf(request), response.status, (performance.now() - started) / 1000)
    return response
  }
}

/** `vary` may be there already, and says more then. */
function addHeaders(headers: Headers, added: Record<string, string>): void {
  for (const [name, value] of Object.entries(added)) if (name !== 'vary' || !headers.has(name)) headers.set(name, value)
}

/** The first part of the path only: the rest names things of the caller's. */
function areaOf(request: Request): string {
  return pathOf(request.url).split('/', 2)[1] ?? ''
}

const operations: Readonly<Record<string, string>> = {
  tokens: 'createToken',
  servers: 'getServer',
  health: 'health',
  'openapi.json': 'reference',
  docs: 'reference',
  'favicon.ico': 'reference',
  '.well-known': 'jwks',
}
const ofNamespace: Readonly<Record<string, string>> = { GET: 'listConnections', POST: 'createConnection' }
const ofConnection: Readonly<Record<string, string>> = {
  GET: 'getConnection',
  PUT: 'replaceConnection',
  DELETE: 'deleteConnection',
}
const belowConnection: Readonly<Record<string, string>> = { mcp: 'callMcp', '.tools': 'useTools' }

/** A closed set: names in a URL must not become labels. */
function operationOf({ url, method }: Request): string {
  const [, area = '', namespace, connectionId, below] = pathOf(url).split('/', 5)
  const of = (names: Readonly<Record<string, string>>, name: string) =>
    Object.hasOwn(names, name) ? (names[name] as string) : 'other'
  if (area !== 'connect' || namespace === undefined) return of(operations, area)
  if (connectionId === undefined) return of(ofNamespace, method)
  return below === undefined ? of(ofConnection, method) : of(belowConnection, below)
}

/** With what it came from. */
function textOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const { name, message, cause } = thrown
  const why = cause instanceof Error && cause.message !== message ? ` (${cause.name}: ${cause.message})` : ''
  return `${name}: ${message}${why}`
}

/** Deeper is the framework. */
const functionsShownMax = 8

/** Where a bug is: names of functions, innermost first. Places in a bundle say nothing to anybody. */
function functionsOf(thrown: unknown): string | undefined {
  const { stack = '' } = thrown instanceof Error ? thrown : {}
  const names = [...stack.matchAll(/^ +at (?:async )?([\w$.#]+) \(/gm)].map(([, name]) => name)
  return names.length === 0 ? undefined : names.slice(0, functionsShownMax).join(' < ')
}
