/**
 * Restores backslashes in paths. The runtime normalizes dots and backslashes in a request's URL, so `/connect/a\..\b`
 * arrives as `/connect/b`, another resource. The parameters of the runtime's own router still have the original path.
 * If it contains a backslash, which no name may (contract, 2.5), the request is passed on with the original name,
 * encoded.
 */

import { type Operation, operations } from '../operations.ts'
import type { Handler } from './handler.ts'

/** Ours: parts of a name with slashes in the path of a request. Past it: 404. */
const wildcardPartsMax = 5

/** A request with its own path again. */
class RestoredRequest extends Request {
  readonly original: Request

  constructor(url: string, original: Request) {
    super(url, original)
    this.original = original
  }
}

/** The request that the runtime knows, for which it provides the client's address and the idle timeout. */
export function originalRequest(request: Request): Request {
  return request instanceof RestoredRequest ? request.original : request
}

type RawHandler = (request: Bun.BunRequest) => Promise<Response> | Response

/** Routes for `Bun.serve`, for each operation with names in its path. All of them pass the request to `fetch`. */
export function rawPathRoutes(fetch: Handler): Record<string, RawHandler> {
  const routes: Record<string, RawHandler> = {}
  for (const { path } of Object.values<Operation>(operations)) {
    if (!path.includes('{')) continue
    const [prefix = '', ...rest] = path.slice(1).split('/')
    const most = path.includes('{+') ? rest.length + wildcardPartsMax - 1 : rest.length
    for (let count = rest.length; count <= most; count += 1) {
      // Numbered, so that operations with different names for the same segment share one route.
      const names = Array.from({ length: count }, (_, part) => `part${part}`)
      const pattern = `/${prefix}${names.map((name) => `/:${name}`).join('')}`
      routes[pattern] = withRawPath(fetch, `/${prefix}/`, names)
    }
  }
  return routes
}

function withRawPath(fetch: Handler, prefix: string, names: readonly string[]): RawHandler {
  return (request) => {
    const params: Readonly<Record<string, string | undefined>> = request.params
    if (!names.some((name) => params[name]?.includes('\\') === true)) return fetch(request)
    const path = names.map((name) => encodeSegment(params[name] ?? '')).join('/')
    // With a fixed host: the request's may be invalid in a URL, and the guard reads the header instead.
    return fetch(new RestoredRequest(`http://localhost${prefix}${path}`, request))
  }
}

/**
 * `.` and `..` would be normalized even if encoded, so they are replaced by a backslash, which is not a valid name
 * either.
 */
function encodeSegment(part: string): string {
  return encodeURIComponent(part === '.' || part === '..' ? '\\' : part)
}
