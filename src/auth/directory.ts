/**
 * The directory: organizations, members, namespaces, API keys, servers, signing keys and revocations. They change
 * rarely and every request needs some, so records are cached for one version: a value in the store that every write to
 * the directory replaces in the same commit. Each request reads the version first, so a revocation, a demotion or a
 * new server takes effect with the next request, whichever process wrote it.
 */

import { LRUCache } from 'lru-cache'
import type { ApiKey } from '../model/organization.ts'
import type { View } from '../model/view.ts'
import { type Block, policyBytes } from '../policy/block.ts'
import { viewBlocks } from '../policy/view-policy.ts'
import { bytesPerCharacter } from '../storage/bytes.ts'
import { readApiKey, readKeyId, readNamespace, readRole, readView } from '../storage/directory-records.ts'
import { directoryVersionKey, keyOf, prefixOf, prefixRange } from '../storage/keys.ts'
import type { PartsOf, RecordKind } from '../storage/record-kinds.ts'
import type { Store } from '../storage/store.ts'
import { readVersion } from '../storage/versions.ts'
import { readGrant } from './grants.ts'
import { keyRing, readSigningKeys } from './signing-keys.ts'

/** Ours: recorded answers of one server that are used. Past it: later ones are ignored. */
const recordedAnswersMax = 5000

/** Decoded records of the directory (servers, namespaces, memberships, keys). Past it: read again. */
const directoryCacheBytesMax = 16 * 2 ** 20
/** Memory of a signing key that is ready to sign. */
const signingKeyBytes = 2048
/** Memory of a decoded record, such as an API key, besides its texts and policy. */
const recordBytes = 512

/**
 * Names of namespaces that are kept of all versions of the directory, for callers who may access them; about 100
 * bytes each. Past it: those asked for least recently are read again.
 */
const keptNamesMax = 200_000

export type Directory = ReturnType<typeof createDirectory>

/** A view, with its policy as it decides. */
export interface DirectoryView extends View {
  readonly blocks: readonly Block[]
}

function directoryView(bytes: Uint8Array): DirectoryView {
  const view = readView(bytes)
  return { ...view, blocks: viewBlocks(view.policy) }
}

type Records = Pick<Store, 'get' | 'getMany' | 'range' | 'keys'>

export function createDirectory(store: Records) {
  const kept = createKept()
  let snapshot = new DirectorySnapshot(store, kept, '')
  return {
    /** The current snapshot. A request gets it once, and uses it throughout. */
    async current(): Promise<DirectorySnapshot> {
      const version = await readVersion(store, directoryVersionKey)
      // A new object, so that requests in progress keep their own snapshot. Version '' is never cached.
      if (version !== snapshot.version || version === '') snapshot = new DirectorySnapshot(store, kept, version)
      return snapshot
    },
  }
}

type Kept = ReturnType<typeof createKept>

/** Shared by all versions: an open stream has the snapshot of its beginning for an hour. */
function createKept() {
  return {
    records: new LRUCache<string, { value: unknown }>({ maxSize: directoryCacheBytesMax }),
    names: new LRUCache<string, ReadonlySet<string>>({ maxSize: keptNamesMax, sizeCalculation: ({ size }) => size }),
    /** Names that are being read. */
    reading: new Map<string, Promise<ReadonlySet<string>>>(),
  }
}

/**
 * The directory in one version, whose records are cached; version '' is never cached. A record is read after the
 * version, so it may be newer, never older. A look-up of a missing one gives undefined, false or an empty list.
 */
export class DirectorySnapshot {
  /** '' for a directory that was never written. */
  readonly version: string
  readonly #store: Records
  readonly #kept: Kept

  constructor(store: Records, kept: Kept, version: string) {
    this.#store = store
    this.#kept = kept
    this.version = version
  }

  apiKey(keyId: string): Promise<ApiKey | undefined> {
    return this.#read('apiKey', [keyId], readApiKey)
  }

  async apiKeyByDigest(digest: string): Promise<ApiKey | undefined> {
    const keyId = await this.#read('apiKeyDigest', [digest], readKeyId)
    return keyId === undefined ? undefined : this.apiKey(keyId)
  }

  async hasOrganization(organizationId: string): Promise<boolean> {
    return (await this.#read('organization', [organizationId], () => true)) === true
  }

  role(organizationId: string, userId: string) {
    return this.#read('member', [organizationId, userId], readRole)
  }

  /** The signing keys, opened with the key that seals them. */
  signingKeys(sealingKey: Buffer) {
    return this.#read(
      'signingKeys',
      [],
      (sealed) => keyRing(readSigningKeys(sealed, sealingKey)),
      ({ all }) => signingKeyBytes * all.length,
    )
  }

  /**
   * Whether a token, or one of those that it was minted with, was revoked. A token may have 150 of these, which all
   * that were minted with the same one share: they are looked up once.
   */
  async isRevoked(jti: string, par: readonly string[] = []): Promise<boolean> {
    const { records } = this.#kept
    const lineage = this.#nameOf(`lineage\0${par.at(-1)}`)
    const asked = par.length === 0 || records.get(lineage) !== undefined ? [jti] : [...par, jti]
    const found = await this.#store.getMany(asked.map((id) => keyOf('revocation', id)))
    if (found.some((value) => value !== undefined)) return true
    if (asked.length > 1 && this.version !== '') records.set(lineage, { value: true }, { size: recordBytes })
    return false
  }

  view(namespace: string, name: string) {
    return this.#read('view', [namespace, name], directoryView, ({ policy }) => policyBytes(policy))
  }

  /** When the thing was made that a grant is for; it never changes. */
  grantMadeAt(grantId: string) {
    return this.#read('grant', [grantId], (bytes) => readGrant(bytes).madeAt)
  }

  namespace(name: string) {
    return this.#read('namespace', [name], readNamespace)
  }

  /** The names that answer a question of `namespace-access.ts`, read once for all; never older than this version. */
  async names(question: string, read: () => Promise<readonly string[]>): Promise<ReadonlySet<string>> {
    const { names, reading } = this.#kept
    if (this.version === '') return new Set(await read())
    const name = this.#nameOf(question)
    const known = names.get(name) ?? reading.get(name)
    if (known !== undefined) return known
    const found = read().then((all): ReadonlySet<string> => new Set(all))
    reading.set(name, found)
    try {
      const all = await found
      // Absence is not kept: invented owners would take the place of others.
      if (all.size > 0) names.set(name, all)
      return all
    } finally {
      reading.delete(name)
    }
  }

  /** Whether there is a server, without reading it. */
  async hasServer(name: string): Promise<boolean> {
    const key = keyOf('server', name)
    const { keys } = await this.#store.keys({ gte: key, lt: Buffer.concat([key, Buffer.of(0)]), limit: 1 })
    return keys.length > 0
  }

  /** The server's details as JSON: the body of a response. They may have a megabyte (`stored-servers.ts`). */
  serverJson(name: string): Promise<Uint8Array | undefined> {
    return this.#read('server', [name], (bytes) => bytes)
  }

  /** Records of answers for mocks of the server, in fixture order; at most `recordedAnswersMax`. Not cached. */
  async recordedAnswers(qualifiedName: string): Promise<Uint8Array[]> {
    const range = { ...prefixRange(prefixOf('mock', qualifiedName)), limit: recordedAnswersMax }
    return (await this.#store.range(range)).entries.map(({ value }) => value)
  }

  #nameOf(name: string): string {
    return `${this.version}\0${name}`
  }

  /** Of the record of this kind and name. `furtherBytes`: bytes of memory that it takes besides those of its texts. */
  async #read<K extends RecordKind, T>(
    kind: K,
    parts: PartsOf<K>,
    decode: (bytes: Uint8Array) => T,
    furtherBytes: (value: T) => number = () => 0,
  ): Promise<T | undefined> {
    // No part of a name can contain NUL, so these are unambiguous.
    const name = this.#nameOf([kind, ...parts].join('\0'))
    const kept = this.#kept.records.get(name)
    if (kept !== undefined) return kept.value as T
    const bytes = await this.#store.get(keyOf(kind, ...parts))
    // Absence is not cached, or requests for invented names would evict existing records.
    if (bytes === undefined) return undefined
    const value = decode(bytes)
    const size =
      recordBytes + bytes.length * (value instanceof Uint8Array ? 1 : bytesPerCharacter) + furtherBytes(value)
    if (this.version !== '') this.#kept.records.set(name, { value }, { size })
    return value
  }
}
