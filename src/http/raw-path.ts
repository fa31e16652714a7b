/**
 * Restores backslashes in paths. The runtime normalizes dots and backslashes in a request's URL, so `/connect/a\..\b`
 * arrives as `/connect/b`, another resource. The parameters of the runtime's own router still have the original path.
 * If it contains a backslash, which no name of ours may (contract, 2.5), the request is passed on with the original
 * name, encoded.
 */

import { type Operation, operations } from '../operations.ts'
import type { Handler } from './handler.ts'

/** Ours: parts of a name with slashes in the path of a request. Past it: 404. */
const wildcardPartsMax = 5

/** Characters of a part that may be a name, with a tool's among them. Past it: the part is replaced as `..` is. */
const partCharsMax = 1000
/** The same with a backslash, which only a server's tool may have; each takes time. Past it: replaced likewise. */
const backslashPartCharsMax = 128

/**
 * Routes for `Bun.serve`, for each operation with names in its path. All of them pass the request to `fetch`, which has
 * the parts of the path as parameters. The first is named after the part before it, which is no parameter.
 */
export function rawPathRoutes(fetch: Handler): Record<string, Handler> {
  const routes: Record<string, Handler> = {}
  for (const { path } of Object.values<Operation>(operations)) {
    if (!path.includes('{')) continue
    const [prefix = '', ...rest] = path.slice(1).split('/')
    const most = path.includes('{+') ? rest.length + wildcardPartsMax - 1 : rest.length
    for (let count = rest.length; count <= most; count += 1) {
      // Numbered, so that operations with different names for the same segment share one route.
      const names = Array.from({ length: count }, (_, part) => (part === 0 ? prefix : `part${part}`))
      routes[`/${prefix}${names.map((name) => `/:${name}`).join('')}`] = fetch
    }
  }
  return routes
}

/** `answer`, to requests with the paths that they came with. */
export function withRawPath(answer: Handler): Handler {
  return (request) => {
    const { params } = request as Partial<Bun.BunRequest<string>>
    if (params === undefined) return answer(request)
    const parts: readonly string[] = Object.values(params)
    if (!parts.some((part) => part.includes('\\'))) return answer(request)
    const [prefix] = Object.keys(params)
    // With a fixed host: the request's may be invalid in a URL, and the guard reads the header instead.
    const path = [prefix, ...parts.map(encodeSegment)].join('/')
    // The same request: a copy would take a copy of its headers, and the runtime knows the client of this one alone.
    Object.defineProperty(request, 'url', { value: `http://localhost/${path}` })
    return answer(request)
  }
}

/** Replaces `.` and `..`, which are normalized even if encoded, and long parts by a backslash, which no name may be. */
function encodeSegment(part: string): string {
  const most = part.includes('\\') ? backslashPartCharsMax : partCharsMax
  return encodeURIComponent(part === '.' || part === '..' || part.length > most ? '\\' : part)
}
