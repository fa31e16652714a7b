/**
 * A request's URL has its dots and backslashes resolved by the runtime, so `/connect/a\..\b` arrives as
 * `/connect/b`. The runtime's own router still has the path as it came; where that holds a backslash, the
 * request is for a name that cannot be (contract 2), and goes on under just that name, encoded.
 */

import { wildcardPartsMax } from '../limits.ts'
import { type Operation, operations } from '../operations.ts'
import type { Handler } from './router.ts'

const originals = new WeakMap<Request, Request>()

/** The request as the runtime knows it: where it comes from, and how long it may take. */
export function originalRequest(request: Request): Request {
  return originals.get(request) ?? request
}

/** Routes for `Bun.serve`, one for each operation with names in its path, that hand everything to `fetch`. */
export function rawPathRoutes(
  fetch: Handler,
): Record<string, (request: Bun.BunRequest) => Promise<Response> | Response> {
  const templates = Object.values(operations).flatMap(({ path }: Operation) => {
    if (!path.includes('{')) return []
    const [prefix = '', ...rest] = path.slice(1).split('/')
    const isWild = path.includes('{+')
    return Array.from({ length: isWild ? wildcardPartsMax : 1 }, (_, more) => ({
      prefix,
      // By number: two operations may call the same part by other names.
      names: Array.from({ length: rest.length + more }, (_, part) => `part${part}`),
    }))
  })
  const routes = templates.map(({ prefix, names }) => {
    const pattern = `/${prefix}${names.map((name) => `/:${name}`).join('')}`
    return [pattern, withRawPath(fetch, `/${prefix}/`, names)] as const
  })
  return Object.fromEntries(routes)
}

function withRawPath(fetch: Handler, prefix: string, names: readonly string[]) {
  return (request: Bun.BunRequest) => {
    const params: Readonly<Record<string, string | undefined>> = request.params
    if (!names.some((name) => params[name]?.includes('\\') === true)) return fetch(request)
    const path = names.map((name) => encodeSegment(params[name] ?? '')).join('/')
    // Under a host of its own: the request's may be one that no URL can have, and the guard reads the header.
    const rewritten = new Request(`http://localhost${prefix}${path}`, request)
    originals.set(rewritten, request)
    return fetch(rewritten)
  }
}

/** Dots alone would be resolved once more, encoded or not: they stand for a name that cannot be, like the backslash. */
function encodeSegment(part: string): string {
  return encodeURIComponent(part === '.' || part === '..' ? '\\' : part)
}
