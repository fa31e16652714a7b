/**
 * Tells clients that their list would be another by now (contract, 20.6). Everything that changes a list changes a
 * version in the store, in whichever process: the versions of all namespaces with listeners are read once a second, and
 * lists are compared where one has changed.
 */

import { PlatformError } from '../../errors.ts'
import { directoryVersionKey, keyOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { versionText } from '../../storage/versions.ts'
import type { Every } from '../gateway/open-streams.ts'
import type { ListKind } from '../gateway/tool-requests.ts'

/** Contract 20.6: streams of list changes that an API key holds with all its tokens. Past it: 429. */
export const listenersOfKeyMax = 16
/** Contract 20.6: streams of list changes in a process. Past it: 429. */
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

export interface Listener {
  readonly namespace: string
  readonly keyId: string
  /** The same for listeners that get the same lists. */
  readonly group: string
  readonly kinds: ReadonlySet<ChangedKind>
  look(): Promise<Digests>
  tell(kind: ChangedKind): void
  /** Writes a comment, which keeps the stream open. */
  comment(): void
}

interface Heard {
  readonly listener: Listener
  digests: Digests
  /** Whether the last look failed, perhaps because too much was asked at once: the next second looks again. */
  isMissed: boolean
}

export class ListChanges {
  readonly #store: Pick<Store, 'getMany'>
  readonly #every: Every
  readonly #heard = new Set<Heard>()
  readonly #counts = new Map<string, number>()
  /** By namespace, as last looked at. */
  readonly #versions = new Map<string, string>()
  #isLooking = false
  #seconds = 0
  #stop: (() => void) | undefined

  /** `every` is replaced in tests. */
  constructor(store: Pick<Store, 'getMany'>, every: Every) {
    this.#store = store
    this.#every = every
  }

  /** Throws 429 if the key or the process has too many. */
  requireRoom(keyId: string): void {
    if (this.#heard.size < listenersMax && (this.#counts.get(keyId) ?? 0) < listenersOfKeyMax) return
    throw new PlatformError('call_rate', 'Too many streams of list changes are open: close some', { retryAfter: 15 })
  }

  /** Listens until the function that this returns is called. Throws as `requireRoom`, and what `look` throws. */
  async listen(listener: Listener): Promise<() => void> {
    this.requireRoom(listener.keyId)
    const { keyId, namespace } = listener
    this.#counts.set(keyId, (this.#counts.get(keyId) ?? 0) + 1)
    let heard: Heard | undefined
    let isOpen = true
    const close = () => {
      if (!isOpen) return
      isOpen = false
      if (heard !== undefined) this.#heard.delete(heard)
      const left = (this.#counts.get(keyId) ?? 0) - 1
      if (left > 0) this.#counts.set(keyId, left)
      else this.#counts.delete(keyId)
      if (this.#heard.size > 0) return
      this.#stop?.()
      this.#stop = undefined
      this.#versions.clear()
    }
    try {
      // The version first: a change after it is looked at once more.
      if (!this.#versions.has(namespace)) await this.#changed([namespace])
      // Many clients of one caller listen, and one look serves them: the next tick notices a later change.
      const same = [...this.#heard].find((one) => one.listener.group === listener.group && !one.isMissed)
      heard = { listener, digests: same?.digests ?? (await listener.look()), isMissed: false }
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
    // Comparing many lists may take longer than a second.
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const namespaces = [...new Set([...this.#heard].map(({ listener }) => listener.namespace))]
      const changed = await this.#changed(namespaces)
      await this.#compare(changed)
    } catch {
      // While the store cannot be read, nobody knows of changes.
    } finally {
      this.#isLooking = false
    }
  }

  /** The namespaces whose version is another one than last time. */
  async #changed(namespaces: readonly string[]): Promise<ReadonlySet<string>> {
    const keys = [directoryVersionKey, ...namespaces.map((name) => keyOf('connectionsVersion', name))]
    const [directory, ...versions] = (await this.#store.getMany(keys)).map(versionText)
    const changed = new Set<string>()
    for (const [index, namespace] of namespaces.entries()) {
      const version = `${directory} ${versions[index]}`
      if (this.#versions.get(namespace) !== version) changed.add(namespace)
      this.#versions.set(namespace, version)
    }
    return changed
  }

  async #compare(namespaces: ReadonlySet<string>): Promise<void> {
    const concerned = [...this.#heard].filter((one) => one.isMissed || namespaces.has(one.listener.namespace))
    for (const group of Map.groupBy(concerned, ({ listener }) => listener.group).values()) {
      const [first] = group
      // One look for all that get the same lists, and others have their turn in between.
      const digests = await first?.listener.look().catch(() => undefined)
      await new Promise((resolve) => setImmediate(resolve))
      for (const heard of group) heard.isMissed = digests === undefined
      if (digests === undefined) continue
      for (const heard of group) {
        for (const kind of changedKinds)
          if (heard.digests[kind] !== digests[kind] && heard.listener.kinds.has(kind)) heard.listener.tell(kind)
        heard.digests = digests
      }
    }
  }
}

/** The lists that make up what a client calls its tools, prompts and resources. */
export const listsOf: Readonly<Record<ChangedKind, readonly ListKind[]>> = {
  tools: ['tools'],
  prompts: ['prompts'],
  resources: ['resources', 'resourceTemplates'],
}
