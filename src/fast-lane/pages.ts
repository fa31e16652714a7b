/**
 * Pages of connections: cached until their namespace changes, and built synchronously if nothing narrows them. Bodies
 * that share the store's memory, and Headers that are reused, do not leave this file uncopied.
 */

import { LRUCache } from 'lru-cache'
import type { ConnectionLists, Page, PreparedList } from '../features/connections/list.ts'
import { isUnchanged, privateJson } from '../http/respond.ts'
import { pageCacheBytesMax, pagesRequestedOnceMax } from '../limits.ts'
import { connectionsVersionKey } from '../storage/keys.ts'
import type { LocalReads } from '../storage/store.ts'
import type { LocalVersions } from './versions.ts'

export interface Pages {
  /** The response from the cache or a synchronous read. Undefined if the page needs an index plan, or was overtaken. */
  respond(list: PreparedList, request: Request, requestId: () => string): Response | undefined
  /** Called with each page that the ordinary path built. */
  remember(list: PreparedList, page: Page): void
  statistics(): { readonly hits: number; readonly misses: number }
}

interface KeptPage {
  readonly version: string
  /** A Blob, because a Response does not copy it. */
  readonly body: Blob
  readonly bytes: number
  readonly etag: string
  readonly headers: Headers
}

type Lists = Pick<ConnectionLists, 'compose' | 'unnarrowedRows'>

export function createPages(
  lists: Lists,
  local: LocalReads,
  versions: LocalVersions,
  bytesMax = pageCacheBytesMax,
): Pages {
  const kept = new LRUCache<string, KeptPage>({
    maxSize: bytesMax,
    sizeCalculation: ({ bytes }, key) => bytes + key.length + 256,
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
      const page = { version, body: new Blob([body]), bytes: body.length, etag, headers }
      kept.set(cacheKey, page)
      return page
    }
    if (requested.size >= pagesRequestedOnceMax) requested.clear()
    requested.set(cacheKey, version)
    return undefined
  }

  /**
   * Sets the request id on the Headers before the Response copies them: setting it later costs two microseconds more.
   */
  function responseOf(
    {
      body,
      etag,
      headers,
    }: { readonly body: Uint8Array<ArrayBuffer> | Blob; readonly etag: string; readonly headers: Headers },
    request: Request,
    requestId: () => string,
  ): Response {
    headers.set('x-request-id', requestId())
    return isUnchanged(request, etag) ? new Response(null, { status: 304, headers }) : new Response(body, { headers })
  }

  return {
    statistics: () => ({ hits, misses }),
    remember: (list, page) => void remember(list, page),
    respond(list, request, requestId) {
      const version = versions.current(list.scope.namespace, connectionsVersionKey)
      const page = kept.get(list.cacheKey)
      if (page !== undefined && page.version === version && version !== '') {
        hits += 1
        return responseOf(page, request, requestId)
      }
      if (list.isNarrowed || version === '') return undefined
      return local.concatValues(list, (values) => {
        const made = lists.compose(list, lists.unnarrowedRows(list, values), version)
        // The namespace changed during the read. The ordinary path answers, without an ETag if need be.
        if (versions.current(list.scope.namespace, connectionsVersionKey) !== version) return undefined
        const { body, etag } = made
        scratchHeaders.set('etag', etag)
        return responseOf(remember(list, made) ?? { body, etag, headers: scratchHeaders }, request, requestId)
      })
    },
  }
}
