/**
 * Reads names from the path of a request's URL. The router's parameters are not used, because they replace characters
 * that cannot be decoded. The runtime has already normalized dots and backslashes in the URL (see raw-path.ts).
 */

import { notFound } from '../errors.ts'

/** The names in the path: its decoded segments without the first one. Throws `not_found` if one cannot be decoded. */
export function namesInPath(url: string): string[] {
  try {
    const segments = pathOf(url).split('/').slice(2)
    return segments.some((segment) => segment.includes('%')) ? segments.map(decodeURIComponent) : segments
  } catch {
    throw notFound()
  }
}

/** The last of them. */
export function lastNameInPath(url: string): string {
  return namesInPath(url).findLast((name) => name !== '') ?? ''
}

/** The rest of the path after `prefix`, percent-decoded once. Undefined without that prefix, or if decoding fails. */
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

/** The path of a URL, without query, still encoded. Faster than `new URL`. */
export function pathOf(url: string): string {
  // The runtime gives only the path if the `Host` header is invalid in a URL.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}
