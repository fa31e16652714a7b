/**
 * A request's URL has its dots and backslashes resolved by the runtime, so `/connect/a\..\b` arrives as
 * `/connect/b`. The runtime's own router still has the path as it came; where that holds a backslash, the
 * request is for a name that cannot be (contract 2), and goes on under just that name, encoded.
 */

import type { Soon } from '../model/soon.ts'
import type { Fetch } from './edge.ts'

const arrived = new WeakMap<Request, Request>()

/** The request as the runtime knows it: where it comes from, and how long it may take. */
export function asArrived(request: Request): Request {
  return arrived.get(request) ?? request
}

/** Routes for `Bun.serve` that hand everything to `fetch`. */
export function rawPathRoutes(fetch: Fetch): Record<string, (request: Bun.BunRequest) => Soon<Response>> {
  const checked =
    (prefix: string, ...names: readonly string[]) =>
    (request: Bun.BunRequest) => {
      const params: Readonly<Record<string, string | undefined>> = request.params
      if (!names.some((name) => params[name]?.includes('\\') === true)) return fetch(request)
      const path = names.map((name) => encoded(params[name] ?? '')).join('/')
      // Under a host of its own: the request's may be one that no URL can have, and the guard reads the header.
      const straight = new Request(`http://localhost${prefix}${path}`, request)
      arrived.set(straight, request)
      return fetch(straight)
    }
  // The deepest path of ours has four parts after `/connect`; a tool's name may have its dots as slashes.
  const parts = [...'abcdefgh']
  const connect = parts.map((_, last) => {
    const names = parts.slice(0, last + 1)
    return [`/connect${names.map((name) => `/:${name}`).join('')}`, checked('/connect/', ...names)] as const
  })
  return {
    ...Object.fromEntries(connect),
    '/servers/:name': checked('/servers/', 'name'),
    '/servers/:namespace/:server': checked('/servers/', 'namespace', 'server'),
  }
}

/** Dots alone would be resolved once more, encoded or not: they stand for a name that cannot be, like the backslash. */
function encoded(part: string): string {
  return encodeURIComponent(part === '.' || part === '..' ? '\\' : part)
}
