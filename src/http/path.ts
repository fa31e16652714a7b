/**
 * Names in a path, read from the target as it came: the router's own parameters replace what it cannot
 * decode, and `new URL()` rewrites backslashes and dots, so neither may decide anything.
 */

/** What follows `prefix` in the path, percent-decoded once; undefined when it does not decode. */
export function nameAfter(prefix: string, url: string): string | undefined {
  const path = pathOf(url)
  if (!path.startsWith(prefix)) return undefined
  try {
    return decodeURIComponent(path.slice(prefix.length))
  } catch {
    return undefined
  }
}

export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}
