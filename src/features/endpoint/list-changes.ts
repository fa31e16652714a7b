/**
 * Tells clients that their list would be another by now (contract, 20.6). Everything that changes a list changes a
 * version in the store, in whichever process: the versions of all namespaces with listeners are read once a second, and
 * lists are compared where one has changed. The directory's version changes with each revocation of anybody: then the
 * records are compared that lists depend on, which are few and small beside the lists.
 */

import { PlatformError } from '../../errors.ts'
import { type Holder, ownerOf } from '../../fairness/owner.ts'
import { Shares } from '../../fairness/shares.ts'
import { nextTurn } from '../../next-turn.ts'
import { directoryVersionKey, keyOf, listingsVersionKey } from '../../storage/keys.ts'
import type { Key, Store } from '../../storage/store.ts'
import { versionText } from '../../storage/versions.ts'
import type { Every } from '../gateway/open-streams.ts'
import type { ListKind } from '../gateway/tool-requests.ts'

/** Contract 20.6: streams of list changes that an API key holds with all its tokens. Past it: 429. */
export const listenersOfKeyMax = 16
/** Contract 20.6: streams of list changes in a process, of which one owner has half of what the others leave. Past it: 429. */
export const listenersMax = 2000
/** Milliseconds: a client hears once of all changes within them (contract, 20.6). */
const lookMs = 1000
/** Seconds after which an idle stream carries a comment (contract, 20.6). */
const commentSeconds = 15

/** The kinds of changes that a client hears of; templates belong to resources. */
export const changedKinds = ['tools', 'prompts', 'resources'] as const
export type ChangedKind = (typeof changedKinds)[number]

/** A hash of each list, as the listener would get it. */
export type Digests = Readonly<Record<ChangedKind, string>>

export interface Listener extends Place {
  readonly holder: Holder
  /** The same for listeners that get the same lists. */
  readonly group: string
  readonly kinds: ReadonlySet<ChangedKind>
  look(): Promise<Digests>
  tell(kind: ChangedKind): void
  /** Writes a comment, which keeps the stream open. */
  comment(): void
}

/** The endpoint at which somebody listens. */
interface Place {
  readonly namespace: string
  /** Undefined: all of the namespace. */
  readonly view: string | undefined
}

const placeOf = ({ namespace, view = '' }: Place) => `${namespace} ${view}`

/** As last looked at. */
interface Seen {
  readonly directory: string
  readonly connections: string
  /** Of the records in the directory that decide on the lists. */
  readonly records: string
}

/** Places whose records are read at once: those of views have megabytes. */
const readAtOnce = 8

interface Heard {
  readonly listener: Listener
  digests: Digests
  /** Whether its lists may have changed since the last look that did not fail: the next second looks again. */
  isDue: boolean
}

export class ListChanges {
  readonly #store: Pick<Store, 'getMany'>
  readonly #every: Every
  readonly #heard = new Set<Heard>()
  readonly #places = new Shares(listenersMax)
  /** All that listen, or are about to. */
  readonly #listeners = new Set<Listener>()
  /** By place. */
  readonly #seen = new Map<string, Seen>()
  #isLooking = false
  /** Owners whose lists are being compared. */
  readonly #comparing = new Set<string>()
  #seconds = 0
  #stop: (() => void) | undefined

  /** `every` is replaced in tests. */
  constructor(store: Pick<Store, 'getMany'>, every: Every) {
    this.#store = store
    this.#every = every
  }

  /** Listens until the function that this returns is called. Throws 429, and what `look` throws. */
  async listen(listener: Listener): Promise<() => void> {
    const { holder } = listener
    const ofKey = this.#listeners.values().filter((one) => one.holder.keyId === holder.keyId)
    if ([...ofKey].length >= listenersOfKeyMax || !this.#places.take(holder, 1))
      throw new PlatformError(
        'call_rate',
        'This API key or its owner has too many streams of list changes open: close some',
        { retryAfter: 15 },
      )
    this.#listeners.add(listener)
    let heard: Heard | undefined
    const close = () => {
      if (!this.#listeners.delete(listener)) return
      this.#places.giveBack(holder, 1)
      if (heard !== undefined) this.#heard.delete(heard)
      if (this.#heard.size > 0) return
      this.#stop?.()
      this.#stop = undefined
      this.#seen.clear()
    }
    try {
      // The version first: a change after it is looked at once more.
      if (!this.#seen.has(placeOf(listener))) await this.#changed([listener])
      // Many clients of one caller listen, and one look serves them: the next tick notices a later change.
      const isCompared = this.#comparing.has(ownerOf(holder))
      const isSame = (one: Heard) => one.listener.group === listener.group && !one.isDue && !isCompared
      const same = [...this.#heard].find(isSame)
      heard = { listener, digests: same?.digests ?? (await listener.look()), isDue: false }
    } catch (thrown) {
      close()
      throw thrown
    }
    this.#heard.add(heard)
    this.#stop ??= this.#every(lookMs, () => void this.#tick())
    return close
  }

  async #tick(): Promise<void> {
    this.#seconds += 1
    if (this.#seconds % commentSeconds === 0) for (const { listener } of this.#heard) listener.comment()
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const listeners = [...this.#heard].map(({ listener }) => listener)
      const places = new Set(listeners.map(placeOf))
      for (const place of this.#seen.keys()) if (!places.has(place)) this.#seen.delete(place)
      const changed = await this.#changed(listeners)
      for (const one of this.#heard) one.isDue ||= changed.has(placeOf(one.listener))
      const due = [...this.#heard].filter(({ isDue }) => isDue)
      for (const [owner, heard] of Map.groupBy(due, ({ listener }) => ownerOf(listener.holder))) {
        // Comparing many lists may take longer than a second.
        if (!this.#comparing.has(owner)) void this.#compare(owner, heard)
        // Others have their turn in between.
        await nextTurn()
      }
    } catch {
      // While the store cannot be read, nobody knows of changes.
    } finally {
      this.#isLooking = false
    }
  }

  /** The places at which something that decides on lists is another than last time. */
  async #changed(listeners: readonly Place[]): Promise<ReadonlySet<string>> {
    const places = new Map(listeners.map((one) => [placeOf(one), one]))
    const keys = [...places.values()].map(({ namespace }) => keyOf('connectionsVersion', namespace))
    const [directory = '', ...versions] = (await this.#store.getMany([directoryVersionKey, ...keys])).map(versionText)
    const stale = [...places].filter(([place]) => this.#seen.get(place)?.directory !== directory)
    const read = await this.#records(stale)
    const changed = new Set<string>()
    for (const [index, place] of [...places.keys()].entries()) {
      const before = this.#seen.get(place)
      const now = { directory, connections: versions[index] ?? '', records: read.get(place) ?? before?.records ?? '' }
      if (before?.connections !== now.connections || before.records !== now.records) changed.add(place)
      this.#seen.set(place, now)
    }
    return changed
  }

  /** By place: its namespace and view as they are stored, and the version of all registered servers, for mocks. */
  async #records(places: readonly (readonly [string, Place])[]): Promise<ReadonlyMap<string, string>> {
    const read = new Map<string, string>()
    for (let at = 0; at < places.length; at += readAtOnce) {
      const some = places.slice(at, at + readAtOnce)
      const keys = some.flatMap(([, { namespace, view }]): Key[] => {
        const record = keyOf('namespace', namespace)
        return [record, view === undefined ? record : keyOf('view', namespace, view)]
      })
      const [servers, ...records] = await this.#store.getMany([listingsVersionKey, ...keys])
      const hashes = records.map((bytes) => (bytes === undefined ? '' : String(Bun.hash(bytes))))
      for (const [index, [place]] of some.entries())
        read.set(place, [versionText(servers), hashes[2 * index], hashes[2 * index + 1]].join(' '))
      await nextTurn()
    }
    return read
  }

  /** Compares the lists of one owner, who may wait for its time: each owner does so alone. */
  async #compare(owner: string, due: readonly Heard[]): Promise<void> {
    this.#comparing.add(owner)
    try {
      for (const group of Map.groupBy(due, ({ listener }) => listener.group).values()) {
        for (const heard of group) heard.isDue = false
        // One look for all that get the same lists.
        const digests = await group[0]?.listener.look().catch(() => undefined)
        await nextTurn()
        for (const heard of group) {
          if (digests === undefined) heard.isDue = true
          else this.#tell(heard, digests)
        }
      }
    } catch {
      // A stream that is broken says so to its own reader.
    } finally {
      this.#comparing.delete(owner)
    }
  }

  #tell(heard: Heard, digests: Digests): void {
    const { listener, digests: before } = heard
    if (!this.#heard.has(heard)) return
    heard.digests = digests
    for (const kind of changedKinds) if (before[kind] !== digests[kind] && listener.kinds.has(kind)) listener.tell(kind)
  }
}

/** The lists that make up what a client calls its tools, prompts and resources. */
export const listsOf: Readonly<Record<ChangedKind, readonly ListKind[]>> = {
  tools: ['tools'],
  prompts: ['prompts'],
  resources: ['resources', 'resourceTemplates'],
}
