/**
 * All servers in memory, as far as lists filter them, with a search index. The texts that lists show are read for the
 * page that is shown: an owner could fill the memory with them. Before each answer the catalogue is brought up to the
 * store's version: it reads the listings that were written since, or after many writes the groups that have changed,
 * and yields the event loop meanwhile.
 */

import { type Holder, ownerOf } from '../../fairness/owner.ts'
import { searchedCharsMax } from '../../limits.ts'
import { namespaceOf, organizationUserId } from '../../model/names.ts'
import type { ServerListing } from '../../model/server.ts'
import { nextTurn } from '../../next-turn.ts'
import { oneAtATime } from '../../one-at-a-time.ts'
import { reading } from '../../schema/json.ts'
import type { Hit, SearchOptions } from '../../search/word-index.ts'
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

/** Characters taken into the search index in one turn, of two milliseconds. Past it: others have their turn first. */
const searchedCharsPerTurn = 8_000

export type Listed = ReturnType<typeof listedOf>

/** The listing of a server that a list shows, parsed in steps. Undefined if it was deleted or hidden meanwhile. */
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

/** The servers of a store, as this process knows them after its last `refresh`. */
export class Catalogue {
  readonly #store: Pick<Store, 'get' | 'getMany' | 'range'>
  readonly #byName = new Map<string, Listed>()
  readonly #owned = createCounts()
  /** A hash of each listing as it is stored, to see what has changed: by name, by group. */
  readonly #hashes = listingGroups.map(() => new Map<string, bigint>())
  readonly #groupVersions = listingGroups.map(() => '')
  readonly #words = createSearchedWords()
  #version = ''
  /** The servers that `#sorted` does not have as they are; after an update that failed, too. */
  readonly #unsorted = new Set<string>()
  #sorted: readonly Listed[] = []
  #named: { readonly all: readonly Listed[]; readonly byName: ReadonlyMap<string, readonly Listed[]> } | undefined

  constructor(store: Pick<Store, 'get' | 'getMany' | 'range'>) {
    this.#store = store
  }

  /** Resolves when it has all that was committed before the call. */
  readonly refresh = oneAtATime(() => this.#update())

  /** In the order of their qualifiedNames' bytes. */
  all(): readonly Listed[] {
    return this.#sorted
  }

  find(qualifiedName: string): Listed | undefined {
    return this.#byName.get(qualifiedName)
  }

  /**
   * The servers that have a name in the registry, by that name: the one whose qualifiedName it is, then the others in
   * order. A name stands for the first of them that is visible. As work in steps, once for each state.
   */
  *byRegistryName(): Generator<number, ReadonlyMap<string, readonly Listed[]>> {
    const all = this.#sorted
    if (this.#named?.all === all) return this.#named.byName
    const byName = new Map<string, Listed[]>()
    for (const [index, server] of all.entries()) {
      if (index % serversPerStep === 0) yield serversStepCost
      const { name } = server.registry
      if (name === undefined) continue
      const others = byName.get(name)
      if (others === undefined) byName.set(name, [server])
      else if (server.qualifiedName === name) others.unshift(server)
      else others.push(server)
    }
    this.#named = { all, byName }
    return byName
  }

  hasServers(namespace: string): boolean {
    const next = this.#sorted[placeAfter(this.#sorted, `${namespace}/`)]
    return this.#byName.has(namespace) || next?.namespace === namespace
  }

  /** The servers that the owner of a namespace has in all of its namespaces. */
  async ownedWith(namespace: string): Promise<number> {
    return this.#owned.of(ownerOf(await holderOf(this.#store, namespace)))
  }

  search(words: readonly string[], options: SearchOptions): Generator<number, Hit[]> {
    return this.#words.search(words, options)
  }

  /** Takes in a listing as it is stored, unless it is the one that is known. `known`: the hashes of its group. */
  async #takeIn(name: string, value: Uint8Array, known: Map<string, bigint>, update: Update): Promise<void> {
    const hash = Bun.hash.xxHash3(value)
    if (known.get(name) === hash) return update.takeTurn(value.length / hashedBytesPerCharacter)
    const listing = readListing(value)
    const holder = await update.holderOf(namespaceOf(name))
    const texts = textsOf(listing)
    const before = this.#byName.get(name)
    const listed = listedOf(listing, holder, texts)
    this.#byName.set(name, listed)
    this.#owned.add(before?.owner, -1)
    this.#owned.add(listed.owner, 1)
    const isIndexed = before?.searched === listed.searched
    if (!isIndexed) this.#words.put(name, holder, texts, !listing.unlisted)
    known.set(name, hash)
    this.#unsorted.add(name)
    await update.takeTurn(listingCharacters + (isIndexed ? 0 : texts.join('').length))
  }

  #forget(name: string, known: Map<string, bigint>): void {
    this.#owned.add(this.#byName.get(name)?.owner, -1)
    this.#words.remove(name)
    this.#byName.delete(name)
    known.delete(name)
    this.#unsorted.add(name)
  }

  /** Takes in the changes of a group, and notes each at once: after a failure, those before it count as taken in. */
  async #readGroup(group: number, update: Update): Promise<void> {
    const known = this.#hashes[group] as Map<string, bigint>
    const there = new Set<string>()
    const prefix = prefixOf('listing', listingGroups[group] as string)
    for await (const { key, value } of everyEntry(this.#store, prefix)) {
      const name = idOfKey(prefix, key)
      there.add(name)
      await this.#takeIn(name, value, known, update)
    }
    for (const name of known.keys()) if (!there.has(name)) this.#forget(name, known)
  }

  async #readGroups(update: Update): Promise<void> {
    const versions = (await this.#store.getMany(groupVersionKeys)).map(versionText)
    for (const [group, groupVersion] of versions.entries()) {
      if (groupVersion === this.#groupVersions[group] && groupVersion !== '') continue
      await this.#readGroup(group, update)
      this.#groupVersions[group] = groupVersion
    }
  }

  async #readListings(names: readonly string[], update: Update): Promise<void> {
    const values = await this.#store.getMany(names.map(listingKey))
    for (const [index, name] of names.entries()) {
      const known = this.#hashes[listingGroups.indexOf(listingGroupOf(name))] as Map<string, bigint>
      const value = values[index]
      if (value !== undefined) await this.#takeIn(name, value, known, update)
      else this.#forget(name, known)
    }
  }

  async #update(): Promise<void> {
    const store = this.#store
    const before = this.#version
    const now = await readVersion(store, listingsVersionKey)
    if (now === before) return
    const update = startUpdate(store)
    const changes = before === '' ? undefined : await store.get(listingChangesKey)
    const changed = changes === undefined ? undefined : listingsChangedSince(Buffer.from(before, 'latin1'), changes)
    if (changed !== undefined) await this.#readListings([...changed], update)
    else await this.#readGroups(update)
    if (this.#unsorted.size > 0) this.#sorted = inOrder(this.#sorted, this.#unsorted, this.#byName)
    this.#unsorted.clear()
    // Last: the records that were read may be newer than this version, and then they are read again.
    this.#version = now
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
    owner: ownerOf(holder),
    id: Bun.randomUUIDv5(qualifiedName, 'url'),
    registry: registryFactsOf(listing),
    searched: Bun.hash.xxHash3(JSON.stringify([texts, unlisted])),
  }
}

/** The texts of a server that are searched, field by field in the order of `searched-words.ts`. */
function textsOf({ qualifiedName, displayName, tools, description }: ServerListing): string[] {
  return [qualifiedName, displayName, tools.join(' '), description].map((text) => text.slice(0, searchedCharsMax))
}

type Update = ReturnType<typeof startUpdate>

function startUpdate(store: Pick<Store, 'get'>) {
  const holders = new Map<string, Promise<Holder>>()
  let taken = 0
  return {
    holderOf: (namespace: string) => holders.getOrInsertComputed(namespace, () => holderOf(store, namespace)),
    /** Yields the event loop after so many characters of listings: reads of a local store do not. */
    async takeTurn(characters: number): Promise<void> {
      taken += characters
      if (taken < searchedCharsPerTurn) return
      taken = 0
      await nextTurn()
    },
  }
}

/** The holder of the words of a namespace: its owner. */
async function holderOf(store: Pick<Store, 'get'>, namespace: string): Promise<Holder> {
  const alone = { keyId: namespace, family: namespace }
  const stored = await store.get(keyOf('namespace', namespace))
  if (stored === undefined) return alone
  const owner = readNamespace(stored)
  return { ...alone, userId: 'userId' in owner ? owner.userId : organizationUserId(owner.organizationId) }
}

/** Reading a listing costs as much as so many characters of it. */
const listingCharacters = 100
/** So many bytes are read and hashed in the time that a character takes. */
const hashedBytesPerCharacter = 100
