/**
 * Repeats earlier decisions synchronously. It decides nothing itself: every cached value is checked against the current
 * version of the data that it depends on, and if that cannot be read synchronously, the ordinary path answers.
 * `createApp({ fastLane: false })` leaves the fast lane out. For a store without local reads there is
 * `versioned-lane.ts`.
 */

import type { Caller } from '../auth/authenticate.ts'
import {
  type AuthorizedConnection,
  type Authorizer,
  contextOf,
  noteTold,
  type RequestContext,
} from '../auth/authorizer.ts'
import type { Clock } from '../clock.ts'
import type { ConnectionLists, Page, PreparedList } from '../features/connections/connection-lists.ts'
import { pathOf } from '../http/path.ts'
import { privateJson } from '../http/respond.ts'
import { responseInOnePieceBytesMax } from '../limits.ts'
import { policyBytes } from '../policy/block.ts'
import type { LocalReads } from '../storage/store.ts'
import { createAdmissions } from './admissions.ts'
import { createCallers } from './callers.ts'
import { createKeptPages } from './kept-pages.ts'
import { createLocalVersions } from './known-versions.ts'

/** Connections cached in decoded form for calls. Past it: the least recently used one is evicted. */
const connectionsKeptBytesMax = 16 * 2 ** 20
/** Requests for lists, each with the policy that it is narrowed by. Past it: prepared again. */
const listsKeptBytesMax = 16 * 2 ** 20
/** Server details with an admission, counted for each caller. Past it: read again. */
const detailsKeptBytesMax = 16 * 2 ** 20

export interface FastLane {
  /** The response, if this credential has requested this URL before and nothing that it depends on has changed. */
  respond(request: Request, requestId: () => string): Response | undefined | Promise<Response | undefined>
  /** Wraps an authorizer so that it caches callers, and connections that a caller may use. */
  authorizer(ordinary: Authorizer): Authorizer
  /** Called with each small page that the ordinary path answered. */
  rememberPage(context: RequestContext, list: PreparedList, page: Page): void
  /** Called with each server's details that the ordinary path answered. */
  rememberDetails(context: RequestContext, json: Uint8Array): void
  /** Pages served from the cache (`hits`) and built (`misses`) since the start. */
  pageCache(): { readonly hits: number; readonly misses: number }
}

/** Callers that were authenticated before, and the answers that each got, by URL. */
export function createRemembered(clock: Clock) {
  const pages = createKeptPages()
  const lists = createAdmissions<PreparedList>({ maxSize: listsKeptBytesMax, sizeOf: listBytes })
  const details = createAdmissions<Uint8Array>({
    maxSize: detailsKeptBytesMax,
    // A larger answer counts for its owner until it is read, which the ordinary path sees to.
    maxEntrySize: responseInOnePieceBytesMax,
    sizeOf: (json) => json.length,
  })
  const headers = new Headers(privateJson)
  /** The same in every fast lane. */
  const shared: Pick<FastLane, 'pageCache' | 'rememberPage' | 'rememberDetails'> = {
    pageCache: pages.statistics,
    rememberPage({ caller, request }, list, page) {
      lists.remember(caller, request.url, list)
      pages.remember(list, page)
    },
    rememberDetails: ({ caller, request }, json) => details.remember(caller, request.url, json),
  }
  return {
    callers: createCallers(clock),
    pages,
    lists,
    details,
    shared,
    detailsResponse(json: Uint8Array, requestId: () => string): Response {
      // On the shared Headers before the Response copies them: on the Response it costs two microseconds more.
      headers.set('x-request-id', requestId())
      return new Response(json as Uint8Array<ArrayBuffer>, { headers })
    },
  }
}

/** An estimate: a parsed policy stays in memory with the list. */
function listBytes({ cacheKey }: PreparedList, caller: Caller): number {
  return 1000 + 4 * cacheKey.length + policyBytes(caller.token?.policy)
}

/** Of a store in this process. `lists`: the part of the lists that a page is made with. */
export function createFastLane(
  local: LocalReads,
  lists: Pick<ConnectionLists, 'unnarrowedPage'>,
  clock: Clock,
): FastLane {
  const versions = createLocalVersions(local)
  const {
    callers,
    pages,
    lists: admittedLists,
    details: admittedDetails,
    shared,
    detailsResponse,
  } = createRemembered(clock)

  /** From the cache, or by a synchronous read. Undefined if it needs an index plan, is large, or was overtaken. */
  function pageResponse(list: PreparedList, request: Request, requestId: () => string): Response | undefined {
    const { namespace } = list.scope
    const version = versions.current(namespace)
    const known = pages.respond(list, version, request, requestId)
    if (known !== undefined || list.isNarrowed || version === '') return known
    // The values share the store's memory, and the response does not: it copies them.
    return local.concatValues(list, responseInOnePieceBytesMax, (values) => {
      const made = lists.unnarrowedPage(list, values, version)
      // The namespace changed during the read. The ordinary path answers, without an ETag if need be.
      if (versions.current(namespace) !== version) return undefined
      return pages.respondWith(list, made, request, requestId)
    })
  }

  return {
    ...shared,
    respond(request, requestId) {
      if (request.method !== 'GET') return undefined
      const known = callers.find(request, versions.current())
      if (known === undefined) return undefined
      const { caller } = known
      const list = admittedLists.find(caller, request.url)
      if (list !== undefined) return pageResponse(list, request, requestId)
      const details = admittedDetails.find(caller, request.url)
      return details === undefined ? undefined : detailsResponse(details, requestId)
    },
    authorizer: (ordinary) => ({
      ...ordinary,
      async authenticate(request, isRepeated) {
        const known = callers.find(request, versions.current())
        if (known !== undefined) return contextOf(known, request, clock)
        const context = await ordinary.authenticate(request, isRepeated)
        callers.remember(context)
        return context
      },
      requireConnection: knowingConnections(local, versions.current, ordinary),
    }),
  }
}

/** Remembers connections that callers may use, each with the version of its namespace's connections. */
function knowingConnections(
  local: LocalReads,
  versionOf: (namespace: string) => string,
  ordinary: Authorizer,
): Authorizer['requireConnection'] {
  const allowed = createAdmissions<{ readonly connection: AuthorizedConnection; readonly version: string }>({
    maxSize: connectionsKeptBytesMax,
    // An estimate of the memory of a decoded record.
    sizeOf: ({ connection: { stored } }) => 4 * (stored.bytes.length + (stored.privateBytes?.length ?? 0)) + 500,
  })
  return async (context, operation, named) => {
    const { caller, request } = context
    // Without its query, which may be another one each time.
    const place = named === undefined ? pathOf(request.url) : `${named.namespace} ${named.connectionId}`
    const name = `${operation} ${place}`
    const before = allowed.find(caller, name)
    if (before !== undefined && before.version === versionOf(before.connection.namespace)) {
      noteTold(context, before.connection.namespace)
      return before.connection
    }
    // The namespace is unknown until the connection was read, so its version cannot be read first. If no commit
    // happened in between, the record belongs to the version that is read afterwards.
    const commitCount = local.commitCount()
    const { stored, ...ref } = await ordinary.requireConnection(context, operation, named)
    // Copied, because the record may be a view of a larger segment that would be kept in memory with it.
    const connection = { ...ref, stored: { ...stored, bytes: Buffer.from(stored.bytes) } }
    const version = versionOf(ref.namespace)
    if (commitCount !== undefined && commitCount === local.commitCount() && version !== '') {
      allowed.remember(caller, name, { connection, version })
    }
    return connection
  }
}
