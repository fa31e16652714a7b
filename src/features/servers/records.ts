/** Records of servers in the store: the details, and the listing beside them, always written together. */

import { isDeepStrictEqual } from 'node:util'
import type { Authorizer, RequestContext } from '../../auth/authorize.ts'
import { authorizedChange } from '../../auth/write-authentication.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { serverBytesMax } from '../../limits.ts'
import { extrasOf, type ListingExtras, listingOf, noExtras, type ServerDetail } from '../../model/server.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { listingKey, serverKey } from '../../storage/keys.ts'
import {
  listingEntry,
  newListingVersions,
  readListing,
  readServer,
  serverEntry,
} from '../../storage/registry-records.ts'
import type { Store } from '../../storage/store.ts'
import { findings } from './findings.ts'

/** A server, with what lists show beyond its details. */
export interface StoredServer {
  readonly detail: ServerDetail
  readonly extras: ListingExtras
}

/** What a server becomes, for this caller, whom it authorizes. `before`: undefined for a new one. */
export type Merge = (context: RequestContext, before: StoredServer | undefined) => Promise<StoredServer>

export interface ServerRecordsDeps {
  readonly store: Store
  readonly authorizer: Pick<Authorizer, 'authenticate'>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

interface Written {
  readonly stored: StoredServer
  readonly isNew: boolean
  /** Whether it is another than before. */
  readonly isChanged: boolean
}

export interface ServerRecords {
  read(qualifiedName: string): Promise<StoredServer | undefined>
  /**
   * Writes a server for the caller of the request. Resolves when it is durable. Throws 400 for a server that is too
   * large, 409 for a change of one that a fixture brought, 401, and what `merge` throws.
   */
  write(request: Request, qualifiedName: string, merge: Merge): Promise<Written>
  /** Throws 404, 409 for a server that a fixture brought, 401, and what `authorize` throws. */
  remove(
    request: Request,
    qualifiedName: string,
    authorize: (context: RequestContext) => Promise<unknown>,
  ): Promise<void>
}

export function createServerRecords({ store, authorizer, now }: ServerRecordsDeps): ServerRecords {
  const change = authorizedChange(authorizer, store)

  async function read(qualifiedName: string): Promise<StoredServer | undefined> {
    const [server, listing] = await store.getMany([serverKey(qualifiedName), listingKey(qualifiedName)])
    if (server === undefined) return undefined
    return {
      detail: readServer(server),
      extras: listing === undefined ? noExtras : extrasOf(readListing(listing)),
    }
  }

  return {
    read,
    write: (request, qualifiedName, merge) =>
      change(request, async (context) => {
        const before = await read(qualifiedName)
        const merged = await merge(context, before)
        // A fixture states `security` itself. It stays as long as the tools are these.
        const hasSameTools = before !== undefined && merged.detail.tools === before.detail.tools
        const security = hasSameTools ? before.detail.security : securityOf(merged.detail)
        const detail = { ...merged.detail, security }
        const createdAt = before === undefined ? new Date(now()).toISOString() : before.extras.createdAt
        const dated = { ...merged.extras, ...(createdAt !== undefined && { createdAt }) }
        const isSame = before !== undefined && isDeepStrictEqual({ detail, extras: dated }, before)
        const result = { stored: { detail, extras: dated }, isNew: before === undefined, isChanged: !isSame }
        if (isSame) return { result }
        const extras = { ...dated, updatedAt: new Date(now()).toISOString() }
        const puts = [serverEntry(detail), listingEntry(listingOf(detail, extras))]
        await refuseFixture(store, serverKey(qualifiedName))
        const bytes = puts[0]?.value.length ?? 0
        if (bytes > serverBytesMax)
          throw invalidRequest(`the server has ${bytes} bytes; at most ${serverBytesMax} are kept`)
        return { write: { puts: [...puts, ...newListingVersions([qualifiedName])] }, result }
      }),
    remove: (request, qualifiedName, authorize) =>
      change(
        request,
        async (context) => {
          await authorize(context)
          if ((await read(qualifiedName)) === undefined) throw notFound()
          await refuseFixture(store, serverKey(qualifiedName))
          const deletes = [serverKey(qualifiedName), listingKey(qualifiedName)]
          return { write: { deletes, puts: newListingVersions([qualifiedName]), fromReserve: true }, result: undefined }
        },
        'removal',
      ),
  }
}

/** Whether nothing suspicious was found in its tools; null without tools (door contract, 2.8). */
function securityOf({ tools }: ServerDetail): ServerDetail['security'] {
  return tools === null ? null : { scanPassed: tools.every((tool) => findings(tool).length === 0) }
}
