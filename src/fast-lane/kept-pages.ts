/** Pages of connections, kept until their namespace changes. Headers that are reused leave this file only as copies. */

import { LRUCache } from 'lru-cache'
import type { Page, PreparedList } from '../features/connections/connection-lists.ts'
import { isUnchanged, privateJson } from '../http/respond.ts'
import { pageCacheBytesMax } from '../limits.ts'

/** List URLs requested once, a few hundred bytes each: the second request caches a page. Past it: all count as new. */
export const pagesRequestedOnceMax = 1000

interface KeptPage {
  readonly version: string
  /** A Blob, because a Response does not copy it. */
  readonly body: Blob
  readonly etag: string
  readonly headers: Headers
}

/** At most `pageCacheBytesMax` of them together. */
export function createKeptPages() {
  const kept = new LRUCache<string, KeptPage>({
    maxSize: pageCacheBytesMax,
    sizeCalculation: ({ body }, key) => body.size + key.length + 256,
  })
  /**
   * The version at which each page was last requested. A page is cached on its second request at the same version.
   * Pages of a client that reads a whole list, or of a namespace that keeps changing, are requested only once per
   * version and would evict the rest.
   */
  const requested = new Map<string, string>()
  const scratchHeaders = new Headers(privateJson)
  let hits = 0
  let misses = 0

  function remember({ cacheKey }: PreparedList, { body, etag, version }: Page): KeptPage | undefined {
    misses += 1
    if (etag === undefined || version === '') return undefined
    if (requested.get(cacheKey) === version) {
      const headers = new Headers({ ...privateJson, etag })
      const page = { version, body: new Blob([body]), etag, headers }
      kept.set(cacheKey, page)
      return page
    }
    if (requested.size >= pagesRequestedOnceMax) requested.clear()
    requested.set(cacheKey, version)
    return undefined
  }

  return {
    /** Pages answered from the cache (`hits`) and built (`misses`). */
    statistics: () => ({ hits, misses }),
    /** Called with each page that the ordinary path built. */
    remember: (list: PreparedList, page: Page) => void remember(list, page),
    /** The response from the cache, if it has the page of this version of the namespace. */
    respond({ cacheKey }: PreparedList, version: string, request: Request, requestId: () => string) {
      const page = kept.get(cacheKey)
      if (page === undefined || page.version !== version || version === '') return undefined
      hits += 1
      return responseOf(page, request, requestId)
    },
    /** The response with a page that was just built, which is kept if it was asked for before. */
    respondWith(list: PreparedList, made: Page & { readonly etag: string }, request: Request, requestId: () => string) {
      const { body, etag } = made
      scratchHeaders.set('etag', etag)
      return responseOf(remember(list, made) ?? { body, etag, headers: scratchHeaders }, request, requestId)
    },
  }
}

/** Sets the request id on the Headers before the Response copies them: setting it later costs two microseconds more. */
function responseOf(
  { body, etag, headers }: Pick<KeptPage, 'etag' | 'headers'> & { readonly body: Uint8Array<ArrayBuffer> | Blob },
  request: Request,
  requestId: () => string,
): Response {
  headers.set('x-request-id', requestId())
  return isUnchanged(request, etag) ? new Response(null, { status: 304, headers }) : new Response(body, { headers })
}
