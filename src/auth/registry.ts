/**
 * The registry: organizations, members, namespaces, API keys, servers, signing keys and revocations. They change
 * rarely and every request asks for some, so what was read is kept, all of it valid for one version: a value in the
 * store that every write to the registry replaces in its own commit. A request reads the version first, so a
 * revocation, a demotion or a new server counts from the next request on, by whichever process.
 */

import { LRUCache } from 'lru-cache'
import { recordedAnswersMax, registryCacheBytesMax } from '../limits.ts'
import type { RecordedAnswer } from '../model/recorded-answer.ts'
import type { ApiKey, Namespace, Role } from '../model/registry.ts'
import {
  apiKeyDigestKey,
  apiKeyKey,
  memberKey,
  mocksOf,
  namespaceKey,
  organizationKey,
  prefixRange,
  registryVersionKey,
  revocationKey,
  serverKey,
  signingKeysKey,
} from '../storage/keys.ts'
import { readApiKey, readKeyId, readMock, readNamespace, readRole } from '../storage/registry-records.ts'
import type { Key, Store } from '../storage/store.ts'
import { readVersion } from '../storage/versions.ts'

export interface Registry {
  /** The registry as it is now; ask once a request and use it for that request. */
  current(): Promise<RegistrySnapshot>
}

export interface RegistrySnapshot {
  /** '' for a registry that was never written. */
  readonly version: string
  apiKeyByDigest(digest: string): Promise<ApiKey | undefined>
  apiKey(keyId: string): Promise<ApiKey | undefined>
  hasOrganization(organizationId: string): Promise<boolean>
  role(organizationId: string, userId: string): Promise<Role | undefined>
  namespace(namespace: string): Promise<Namespace | undefined>
  /** The signing keys' record, sealed. */
  signingKeys(): Promise<Uint8Array | undefined>
  /** Was the token of this id revoked? */
  isRevoked(jti: string): Promise<boolean>
  /** The server's details as JSON, ready to be answered. */
  serverJson(qualifiedName: string): Promise<Uint8Array | undefined>
  /** What was recorded for mocks of the server, in the order of the fixtures. */
  recordedAnswers(qualifiedName: string): Promise<RecordedAnswer[]>
}

export function createRegistry(store: Pick<Store, 'get' | 'range'>): Registry {
  let snapshot = createSnapshot(store, '')
  return {
    async current() {
      const version = await readVersion(store, registryVersionKey)
      // What an earlier request still holds stays as it was for that request; nothing is shared with it.
      if (version !== snapshot.version || version === '') snapshot = createSnapshot(store, version)
      return snapshot
    },
  }
}

/** Each record is read at most once a version: an entry can be newer than the version, never older. */
function createSnapshot(store: Pick<Store, 'get' | 'range'>, version: string): RegistrySnapshot {
  const records = new LRUCache<string, { value: unknown }>({
    maxSize: registryCacheBytesMax,
    sizeCalculation: ({ value }) => (value instanceof Uint8Array ? value.length + 256 : 512),
  })

  /** `name` is the record's in this map: names hold no NUL, so kinds and parts cannot run into each other. */
  async function read<T>(name: string, key: () => Key, decode: (bytes: Uint8Array) => T): Promise<T | undefined> {
    const kept = records.get(name)
    if (kept !== undefined) return kept.value as T
    const bytes = await store.get(key())
    // Absence is not remembered: made-up names would push out what is real.
    if (bytes === undefined) return undefined
    const value = decode(bytes)
    records.set(name, { value })
    return value
  }
  const itself = (bytes: Uint8Array) => bytes
  const present = () => true
  const apiKey = (keyId: string) => read(`key\0${keyId}`, () => apiKeyKey(keyId), readApiKey)

  return {
    version,
    apiKey,
    async apiKeyByDigest(digest) {
      const keyId = await read(`digest\0${digest}`, () => apiKeyDigestKey(digest), readKeyId)
      return keyId === undefined ? undefined : apiKey(keyId)
    },
    hasOrganization: async (organizationId) =>
      (await read(`organization\0${organizationId}`, () => organizationKey(organizationId), present)) === true,
    role: (organizationId, userId) =>
      read(`member\0${organizationId}\0${userId}`, () => memberKey(organizationId, userId), readRole),
    signingKeys: () => read('signing keys', () => signingKeysKey, itself),
    isRevoked: async (jti) => (await read(`revoked\0${jti}`, () => revocationKey(jti), present)) === true,
    namespace: (namespace) => read(`namespace\0${namespace}`, () => namespaceKey(namespace), readNamespace),
    serverJson: (qualifiedName) => read(`server\0${qualifiedName}`, () => serverKey(qualifiedName), itself),
    async recordedAnswers(qualifiedName) {
      const { entries } = await store.range({ ...prefixRange(mocksOf(qualifiedName)), limit: recordedAnswersMax })
      return entries.map(({ value }) => readMock(value))
    },
  }
}
