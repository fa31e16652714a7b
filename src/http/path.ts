/**
 * Names in a path, read from the request's URL: the router's own parameters replace what they cannot decode.
 * The runtime has resolved dots and backslashes in the URL by then, as URLs do, and routed by the same path.
 */

import { notFound } from '../errors.ts'

/** The decoded segments of a path, after its first. Throws `not_found` for what cannot be decoded. */
export function pathSegments(url: string): string[] {
  try {
    const segments = pathOf(url).split('/').slice(2)
    return segments.some((segment) => segment.includes('%')) ? segments.map(decodeURIComponent) : segments
  } catch {
    throw notFound()
  }
}

/** What follows `prefix` in the path, percent-decoded once; undefined when it does not decode. */
export function nameAfter(prefix: string, url: string): string | undefined {
  const path = pathOf(url)
  if (!path.startsWith(prefix)) return undefined
  const name = path.slice(prefix.length)
  if (!name.includes('%')) return name
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}

export function pathOf(url: string): string {
  // A path alone comes with a Host that no URL can have.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}
