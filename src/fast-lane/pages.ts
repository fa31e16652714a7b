/**
 * Pages of connections in a store of this process: from the cache, or built synchronously if nothing narrows them.
 * Bodies that share the store's memory do not leave this file uncopied.
 */

import type { ConnectionLists, PreparedList } from '../features/connections/connection-lists.ts'
import { responseInOnePieceBytesMax } from '../limits.ts'
import { keyOf } from '../storage/keys.ts'
import type { LocalReads } from '../storage/store.ts'
import { createKeptPages } from './kept-pages.ts'
import type { LocalVersions } from './known-versions.ts'

/** The part of the lists that a page is made with. */
export type Lists = Pick<ConnectionLists, 'compose' | 'unnarrowedRows'>

/** Kept pages, and those that can be made without waiting. */
export function createPages(lists: Lists, local: LocalReads, versions: LocalVersions) {
  const kept = createKeptPages()
  return {
    statistics: kept.statistics,
    remember: kept.remember,
    /** From the cache, or by a synchronous read. Undefined if it needs an index plan, is large, or was overtaken. */
    respond(list: PreparedList, request: Request, requestId: () => string): Response | undefined {
      const current = () => versions.current(list.scope.namespace, (of) => keyOf('connectionsVersion', of))
      const version = current()
      const known = kept.respond(list, version, request, requestId)
      if (known !== undefined || list.isNarrowed || version === '') return known
      return local.concatValues(list, responseInOnePieceBytesMax, (values) => {
        const made = lists.compose(list, lists.unnarrowedRows(list, values), version)
        // The namespace changed during the read. The ordinary path answers, without an ETag if need be.
        if (current() !== version) return undefined
        return kept.respondWith(list, made, request, requestId)
      })
    },
  }
}
