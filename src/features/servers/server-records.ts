/** Records of servers in the store: the details, and the listing beside them, always written together. */

import { isDeepStrictEqual } from 'node:util'
import type { RequestContext } from '../../auth/authorizer.ts'
import type { DirectoryWrite } from '../../auth/writes.ts'
import { timestampOf } from '../../clock.ts'
import { invalidRequest, namespaceFull, notFound, ownerFull, type PlatformError } from '../../errors.ts'
import { type Allowance, allowanceOf } from '../../fairness/allowance.ts'
import { ownerServersMax, serverBytesMax } from '../../limits.ts'
import { namespaceOf } from '../../model/names.ts'
import { extrasOf, type ListingExtras, listingOf, noExtras, type ServerDetail } from '../../model/server.ts'
import { reading } from '../../schema/json.ts'
import { equalBytes } from '../../storage/bytes.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import {
  listingEntry,
  newListingVersions,
  readListing,
  readServer,
  serverEntry,
} from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, listingChangesKey, listingKey } from '../../storage/keys.ts'
import type { Key, Store } from '../../storage/store.ts'
import { createUsages, type Usages } from '../../storage/usage.ts'
import { findingsIn } from '../pins/pin-findings.ts'
import { textsIn } from '../pins/shown-text.ts'
import type { ServerDeps } from './server-deps.ts'

/** A server, with what lists show beyond its details. */
export interface StoredServer {
  readonly detail: ServerDetail
  readonly extras: ListingExtras
}

type Values = readonly (Uint8Array | undefined)[]
export const bytesOf = (values: Values): number => values.reduce((sum, value) => sum + (value?.length ?? 0), 0)

/** Reads a server in the request's owner's time. Rejects with `rate_limited`. */
export async function storedServer(store: Pick<Store, 'getMany'>, request: Request, qualifiedName: string) {
  const allowance = allowanceOf(request)
  return parsed(allowance, await allowance.readRecords(() => store.getMany(keysOf(qualifiedName)), bytesOf))
}

/**
 * Resolves when the server is durable, with `isChanged` if it is another than before. `merge` makes it: `before` is
 * undefined for a new one. Throws 400 for one that is too large, 403 if its namespace or owner has no room, 409 for a
 * change of one that a fixture brought, what `merge` throws, and 503 if others change the server all the time.
 */
export async function writeServer(
  deps: ServerDeps,
  write: DirectoryWrite<unknown>,
  qualifiedName: string,
  merge: (before: StoredServer | undefined) => StoredServer,
) {
  const { store, catalogue, denials, quota } = deps
  const queue = `the server ${qualifiedName}`
  const keys = keysOf(qualifiedName)
  const namespace = namespaceOf(qualifiedName)
  const refused = (context: RequestContext, reason: string, error: PlatformError) => {
    denials.recordWriteRefusal(context.request, context.caller, namespace, reason)
    return error
  }
  const decide = async () => {
    const values = await allowanceOf(write.request).readRecords(() => store.getMany(keys), bytesOf)
    const { result, puts } = await made(deps, write, values, merge)
    return write.change<typeof result | 'again'>(async (context) => {
      const now = await store.getMany([...keys, listingChangesKey])
      if (keys.some((_, index) => !equalBytes(now[index], values[index] ?? null))) return { result: 'again' }
      // Servers that are made at once may pass the bound by as many.
      if (result.isNew && (await catalogue.ownedWith(namespace)) >= ownerServersMax)
        throw refused(context, 'owner_full', ownerFull(namespace, ownerServersMax))
      if (!result.isChanged) return { result }
      await refuseFixture(store, keyOf('server', qualifiedName))
      const bytes = puts[0]?.value.length ?? 0
      if (bytes > serverBytesMax)
        throw invalidRequest(`the server is too large: at most ${serverBytesMax} bytes are kept`)
      const usages = usagesWithout(keys, now)
      for (const entry of puts) usages.add(entry)
      const versions = newListingVersions([qualifiedName], now[2])
      const full = () => refused(context, 'namespace_full', namespaceFull(namespace))
      return { write: { puts: [...puts, ...versions], counts: usages.counts(quota) }, result, full }
    })
  }
  const written = await decideAgain(queue, () => allowanceOf(write.request).write(queue, decide))
  // Its words are taken in while its writer waits, and not those who list servers next. It is durable all the same.
  if (written.isChanged) await catalogue.refresh().catch(() => {})
  return written
}

/** A server and its records, made in its owner's time: inside a change of the directory, everybody would wait. */
async function made(
  { catalogue, clock }: ServerDeps,
  { request }: DirectoryWrite<unknown>,
  values: Values,
  merge: (before: StoredServer | undefined) => StoredServer,
) {
  const allowance = allowanceOf(request)
  const before = await parsed(allowance, values)
  const merged = merge(before)
  if (before === undefined) await catalogue.refresh()
  // A fixture states `security` itself. It stays as long as the tools are these.
  const isScanned = merged.detail.tools === before?.detail.tools
  const security = isScanned ? before.detail.security : await allowance.run(scanning(merged.detail))
  const detail = { ...merged.detail, security }
  const createdAt = before === undefined ? timestampOf(clock) : before.extras.createdAt
  const dated = { ...merged.extras, ...(createdAt !== undefined && { createdAt }) }
  const entry = serverEntry(detail)
  const isSame = equalBytes(entry.value, values[0] ?? null) && isDeepStrictEqual(dated, before?.extras)
  const result = { stored: { detail, extras: dated }, isNew: before === undefined, isChanged: !isSame }
  return { result, puts: [entry, listingEntry(listingOf(detail, { ...dated, updatedAt: timestampOf(clock) }))] }
}

/** Throws 404, and 409 for a server that a fixture brought. */
export function removeServer(store: Store, { change }: DirectoryWrite<unknown>, qualifiedName: string): Promise<void> {
  return change(async () => {
    const deletes = keysOf(qualifiedName)
    const values = await store.getMany([...deletes, listingChangesKey])
    if (values[0] === undefined) throw notFound()
    await refuseFixture(store, keyOf('server', qualifiedName))
    const counts = usagesWithout(deletes, values).counts()
    const puts = newListingVersions([qualifiedName], values[2])
    return { write: { deletes, puts, counts, fromReserve: 'deletion' }, result: undefined }
  })
}

function keysOf(qualifiedName: string): [Key, Key] {
  return [keyOf('server', qualifiedName), listingKey(qualifiedName)]
}

/** `values`: as stored under `keysOf`. Rejects with `rate_limited`. */
async function parsed(allowance: Allowance, [server, listing]: Values): Promise<StoredServer | undefined> {
  if (server === undefined) return undefined
  const read = () => {
    return { detail: readServer(server), extras: listing === undefined ? noExtras : extrasOf(readListing(listing)) }
  }
  return allowance.parse(server.length, reading(server.length, read))
}

function usagesWithout(keys: readonly Key[], values: Values): Usages {
  const usages = createUsages()
  for (const [index, key] of keys.entries()) usages.remove(key, values[index])
  return usages
}

/** Whether nothing suspicious was found in its tools; null without tools (contract, 9.9). As work in steps. */
function* scanning({ tools }: ServerDetail): Generator<number, ServerDetail['security']> {
  if (tools === null) return null
  let scanPassed = true
  for (const tool of tools) scanPassed &&= (yield* findingsIn(yield* textsIn(tool))).length === 0
  return { scanPassed }
}
