/**
 * What was decided before, used again without waiting. The ordinary way is complete and right by itself: nothing here
 * decides anything, and each thing that is remembered is asked whether what it depends on is still the same. Where that
 * cannot be told at once, the ordinary way answers. `createApp({ fastLane: false })` leaves it out, and so does an
 * engine that has no local reads.
 */

import type { AuthorizedConnection, Authorizer, RequestContext } from '../auth/authorize.ts'
import type { ConnectionLists, ListRequest, Page } from '../features/connections/list.ts'
import { privateJson } from '../http/respond.ts'
import { connectionsKeptBytesMax, detailsKeptBytesMax } from '../limits.ts'
import type { Access } from '../policy/decide.ts'
import { connectionsVersionKey, registryVersionKey } from '../storage/keys.ts'
import type { LocalReads } from '../storage/store.ts'
import { createAdmissions } from './admissions.ts'
import { createCallers } from './callers.ts'
import { createPages } from './pages.ts'
import { createLocalVersions } from './versions.ts'

export interface FastLane {
  /** The answer, where this credential asked for this URL before and nothing that it depends on has changed. */
  respond(request: Request, requestId: () => string): Response | undefined
  /** The same authorizer, which remembers callers and the connections that they were allowed. */
  authorizer(ordinary: Authorizer): Authorizer
  /** Told of a page that was answered. */
  rememberPage(context: RequestContext, list: ListRequest, page: Page): void
  /** Told of a server's details that were answered. */
  rememberDetails(context: RequestContext, json: Uint8Array): void
  /** Pages that were answered ready, and made, since the start. */
  pageCache(): { readonly hits: number; readonly misses: number }
}

export interface FastLaneOptions {
  readonly local: LocalReads
  readonly lists: Pick<ConnectionLists, 'compose' | 'unnarrowedRows'>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

interface AllowedConnection {
  readonly connection: AuthorizedConnection
  /** Of the connections of its namespace. */
  readonly version: string
}

export function createFastLane({ local, lists, now }: FastLaneOptions): FastLane {
  const versions = createLocalVersions(local)
  const callers = createCallers(now)
  const pages = createPages(lists, local, versions)
  const admittedLists = createAdmissions<ListRequest>()
  const admittedDetails = createAdmissions<Uint8Array>({ bytesMax: detailsKeptBytesMax, sizeOf: (json) => json.length })
  const allowed = createAdmissions<AllowedConnection>({
    bytesMax: connectionsKeptBytesMax,
    sizeOf: ({ connection: { stored } }) => 4 * (stored.bytes.length + (stored.privateBytes?.length ?? 0)) + 500,
  })
  const detailsHeaders = new Headers(privateJson)

  const registryVersion = () => versions.current('', () => registryVersionKey)
  const connectionsVersion = (namespace: string) => versions.current(namespace, connectionsVersionKey)

  function detailsResponse(json: Uint8Array, requestId: () => string): Response {
    // Set before the response is made: on the response it would cost a busy server two microseconds.
    detailsHeaders.set('x-request-id', requestId())
    return new Response(json as Uint8Array<ArrayBuffer>, { headers: detailsHeaders })
  }

  return {
    pageCache: pages.statistics,
    respond(request, requestId) {
      if (request.method !== 'GET') return undefined
      const known = callers.find(request, registryVersion())
      if (known === undefined) return undefined
      const { caller } = known
      const list = admittedLists.find(caller, request.url)
      if (list !== undefined) return pages.respond(list, request, requestId)
      const details = admittedDetails.find(caller, request.url)
      return details === undefined ? undefined : detailsResponse(details, requestId)
    },
    rememberPage({ caller, request }, list, page) {
      admittedLists.remember(caller, request.url, list)
      pages.remember(list, page)
    },
    rememberDetails: ({ caller, request }, json) => admittedDetails.remember(caller, request.url, json),
    authorizer: (ordinary) => ({
      ...ordinary,
      async authenticate(request) {
        const known = callers.find(request, registryVersion())
        if (known !== undefined) return { ...known, request }
        const context = await ordinary.authenticate(request)
        callers.remember(context)
        return context
      },
      async connection(context, operation: Access['operation']) {
        const { caller, request } = context
        const name = `${operation} ${request.url}`
        const before = allowed.find(caller, name)
        if (before !== undefined && before.version === connectionsVersion(before.connection.namespace)) {
          return before.connection
        }
        return rememberAllowed(context, name, () => ordinary.connection(context, operation))
      },
    }),
  }

  async function rememberAllowed(
    { caller }: RequestContext,
    name: string,
    authorize: () => Promise<AuthorizedConnection>,
  ): Promise<AuthorizedConnection> {
    // By its commits, because the namespace is not known yet: what is remembered may be newer than its version says,
    // never older.
    const commitCount = local.commitCount()
    const { stored, ...ref } = await authorize()
    // A copy of its own: the record is a part of many in memory.
    const connection = { ...ref, stored: { ...stored, bytes: Buffer.from(stored.bytes) } }
    const version = connectionsVersion(ref.namespace)
    if (commitCount !== undefined && commitCount === local.commitCount() && version !== '') {
      allowed.remember(caller, name, { connection, version })
    }
    return connection
  }
}
