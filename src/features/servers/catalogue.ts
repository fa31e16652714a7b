/**
 * All servers in memory, as far as lists filter them, with a search index. The texts that lists show are read from the
 * store for the page that is shown: an owner could fill the memory with them. Before each answer the catalogue is
 * brought up to the store's version, so that a write shows in the next response of every process. It reads the listings
 * that were written since, or after many writes the groups that have changed, and yields the event loop while it takes
 * them in.
 */

import { type Holder, ownerOf } from '../../fairness/owner.ts'
import { searchedCharsMax } from '../../limits.ts'
import { namespaceOf, organizationUserId } from '../../model/names.ts'
import type { ServerListing } from '../../model/server.ts'
import { oneAtATime } from '../../one-at-a-time.ts'
import { reading } from '../../schema/json.ts'
import { listingsChangedSince, readListing, readNamespace } from '../../storage/directory-records.ts'
import { everyEntry } from '../../storage/every-entry.ts'
import {
  idOfKey,
  keyOf,
  listingChangesKey,
  listingGroupOf,
  listingGroups,
  listingKey,
  listingsVersionKey,
  prefixOf,
} from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { readVersion, versionText } from '../../storage/versions.ts'
import { createCounts, createSearchedWords } from './searched-words.ts'
import { registryFactsOf } from './to-server-json.ts'

/** Listings of servers read from the store at once. Past it: in several reads. */
const listingsPerRead = 100
/**
 * Characters of listings taken into the search index in one turn; about two milliseconds. Past it: other requests
 * have their turn first.
 */
const searchedCharsPerTurn = 8_000

/** A server with the fields that lists filter by. */
export type Listed = ReturnType<typeof listedOf>

/**
 * Parses the listing of a server for a list that shows it, as work in steps. Undefined if the server was deleted or
 * hidden since the list was made.
 */
export function* readingShown(
  { unlisted }: Listed,
  value: Uint8Array | undefined,
): Generator<number, ServerListing | undefined> {
  if (value === undefined) return undefined
  const listing = yield* reading(value.length, () => readListing(value))
  return listing.unlisted && !unlisted ? undefined : listing
}

/** Servers are compared so many at once: less than half a millisecond, in the unit of `sliceCost`. */
export const serversPerStep = 1000
export const serversStepCost = 10_000

const groupVersionKeys = listingGroups.map((group) => keyOf('listingGroupVersion', group))

/**
 * All servers. `refresh` resolves when it has all that was committed before the call. `all`: in the order of their
 * qualifiedNames' bytes. `ownedWith`: how many servers the owner of a namespace has in all of its namespaces.
 */
export type Catalogue = ReturnType<typeof createCatalogue>

export function createCatalogue(store: Pick<Store, 'get' | 'getMany' | 'range'>) {
  const byName = new Map<string, Listed>()
  const owned = createCounts()
  /** A hash of each listing as it is stored, to see what has changed: by name, by group. */
  const hashes = listingGroups.map(() => new Map<string, bigint>())
  const groupVersions = listingGroups.map(() => '')
  const words = createSearchedWords()
  let version = ''
  /** The servers that `sorted` does not have as they are; after an update that failed, too. */
  const unsorted = new Set<string>()
  let sorted: readonly Listed[] = []

  /** `holder`: of its words. Returns how many characters were taken into the index. */
  function put(listing: ServerListing, holder: Holder): number {
    const { qualifiedName, unlisted } = listing
    const before = byName.get(qualifiedName)
    const texts = textsOf(listing)
    const listed = listedOf(listing, holder, texts)
    byName.set(qualifiedName, listed)
    owned.add(before?.owner, -1)
    owned.add(listed.owner, 1)
    if (before?.searched === listed.searched) return 0
    words.put(qualifiedName, holder, texts, !unlisted)
    return texts.reduce((sum, { length }) => sum + length, 0)
  }

  /** Takes in a listing as it is stored, unless it is the one that is known. `known`: the hashes of its group. */
  async function takeIn(name: string, value: Uint8Array, known: Map<string, bigint>, update: Update): Promise<void> {
    const hash = Bun.hash.xxHash3(value)
    if (known.get(name) === hash) return update.takeTurn(value.length / hashedBytesPerCharacter)
    const characters = put(readListing(value), await update.holderOf(namespaceOf(name)))
    known.set(name, hash)
    unsorted.add(name)
    await update.takeTurn(characters + listingCharacters)
  }

  function forget(name: string, known: Map<string, bigint>): void {
    owned.add(byName.get(name)?.owner, -1)
    words.remove(name)
    byName.delete(name)
    known.delete(name)
    unsorted.add(name)
  }

  /** Takes in the changes of a group, and notes each at once: after a failure, those before it count as taken in. */
  async function readGroup(group: number, update: Update): Promise<void> {
    const known = hashes[group] as Map<string, bigint>
    const there = new Set<string>()
    const prefix = prefixOf('listing', listingGroups[group] as string)
    for await (const { key, value } of everyEntry(store, prefix, listingsPerRead)) {
      const name = idOfKey(prefix, key)
      there.add(name)
      await takeIn(name, value, known, update)
    }
    for (const name of known.keys()) if (!there.has(name)) forget(name, known)
  }

  async function readGroups(update: Update): Promise<void> {
    const versions = (await store.getMany(groupVersionKeys)).map(versionText)
    for (const [group, groupVersion] of versions.entries()) {
      if (groupVersion === groupVersions[group] && groupVersion !== '') continue
      await readGroup(group, update)
      groupVersions[group] = groupVersion
    }
  }

  async function readListings(names: readonly string[], update: Update): Promise<void> {
    const values = await store.getMany(names.map(listingKey))
    for (const [index, name] of names.entries()) {
      const known = hashes[listingGroups.indexOf(listingGroupOf(name))] as Map<string, bigint>
      const value = values[index]
      if (value !== undefined) await takeIn(name, value, known, update)
      else forget(name, known)
    }
  }

  async function update(): Promise<void> {
    const now = await readVersion(store, listingsVersionKey)
    if (now === version) return
    const update = startUpdate(store)
    const changes = version === '' ? undefined : await store.get(listingChangesKey)
    const changed = changes === undefined ? undefined : listingsChangedSince(Buffer.from(version, 'latin1'), changes)
    if (changed !== undefined) await readListings([...changed], update)
    else await readGroups(update)
    if (unsorted.size > 0) sorted = inOrder(sorted, unsorted, byName)
    unsorted.clear()
    // Last: the records that were read may be newer than this version, and then they are read again.
    version = now
  }

  return {
    refresh: oneAtATime(update),
    all: () => sorted,
    find: (qualifiedName: string) => byName.get(qualifiedName),
    hasServers: (namespace: string) =>
      byName.has(namespace) || sorted[placeAfter(sorted, `${namespace}/`)]?.namespace === namespace,
    ownedWith: async (namespace: string) => owned.of(ownerOf(await holdersIn(store)(namespace))),
    words: { search: words.search },
  }
}

/** All servers in the order of their names' bytes: names are ASCII. `changed`: names added, removed or replaced. */
function inOrder(before: readonly Listed[], changed: ReadonlySet<string>, byName: ReadonlyMap<string, Listed>) {
  if (changed.size > placedAtMost) return [...byName.keys()].sort().map((name) => byName.get(name) as Listed)
  const after = [...before]
  for (const name of changed) {
    const next = placeAfter(after, name)
    const wasThere = after[next - 1]?.qualifiedName === name ? 1 : 0
    const server = byName.get(name)
    after.splice(next - wasThere, wasThere, ...(server === undefined ? [] : [server]))
  }
  return after
}

/** Servers that are put in their places one by one: to sort 100,000 takes 50 ms, to place one a twentieth. */
const placedAtMost = 20

/** The place of the first server that comes after a name, among servers in order. */
export function placeAfter(servers: readonly Listed[], qualifiedName: string): number {
  let [from, to] = [0, servers.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((servers[middle] as Listed).qualifiedName <= qualifiedName) from = middle + 1
    else to = middle
  }
  return from
}

function listedOf(listing: ServerListing, holder: Holder, texts: readonly string[]) {
  const { qualifiedName, unlisted, remote, isDeployed, verified, repositoryUrl } = listing
  return {
    ...{ qualifiedName, unlisted, remote, isDeployed, verified, repositoryUrl },
    namespace: holder.family,
    /** Of the namespace, as in `fairness/owner.ts`. */
    owner: ownerOf(holder),
    /** A UUID that follows from the qualifiedName. */
    id: Bun.randomUUIDv5(qualifiedName, 'url'),
    registry: registryFactsOf(listing),
    /** A hash of what is searched, to see whether it changes. */
    searched: Bun.hash.xxHash3(JSON.stringify([texts, unlisted])),
  }
}

/** The texts of a server that are searched, field by field in the order of `searched-words.ts`. */
function textsOf({ qualifiedName, displayName, tools, description }: ServerListing): string[] {
  return [qualifiedName, displayName, tools.join(' '), description].map((text) => text.slice(0, searchedCharsMax))
}

/** The helpers of one update of the catalogue. */
type Update = ReturnType<typeof startUpdate>

function startUpdate(store: Pick<Store, 'get'>) {
  return { takeTurn: turnTaker(), holderOf: holdersIn(store) }
}

/** Finds the holder of the words of a namespace: its owner. Looks up each namespace once. */
function holdersIn(store: Pick<Store, 'get'>) {
  const holders = new Map<string, Promise<Holder>>()
  const find = async (namespace: string): Promise<Holder> => {
    const stored = await store.get(keyOf('namespace', namespace))
    const alone = { keyId: namespace, family: namespace }
    if (stored === undefined) return alone
    const owner = readNamespace(stored)
    return { ...alone, userId: 'userId' in owner ? owner.userId : organizationUserId(owner.organizationId) }
  }
  return (namespace: string): Promise<Holder> => {
    const holder = holders.get(namespace) ?? find(namespace)
    holders.set(namespace, holder)
    return holder
  }
}

/** Yields the event loop after so many characters of listings: reads of a local store do not. */
function turnTaker() {
  let taken = 0
  return async (characters: number): Promise<void> => {
    taken += characters
    if (taken < searchedCharsPerTurn) return
    taken = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Reading a listing costs as much as so many characters of it. */
const listingCharacters = 100
/** So many bytes are read and hashed in the time that a character takes. */
const hashedBytesPerCharacter = 100
