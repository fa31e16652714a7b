/**
 * The registry: organizations, members, namespaces, API keys, servers, signing keys and revocations. They change rarely and every
 * request asks for some, so what was read is kept, all of it valid for one generation: a value in the
 * store that every write to the registry replaces in its own commit. A request reads the generation first,
 * so a revocation, a demotion or a new server counts from the next request on, by whichever process.
 */

import { LRUCache } from 'lru-cache'
import { callersCachedBytesMax, callersCachedMax, recordedAnswersMax, registryCacheBytesMax } from '../limits.ts'
import type { RecordedAnswer } from '../model/recorded-answer.ts'
import type { ApiKey, Namespace, Role } from '../model/registry.ts'
import { type Soon, then } from '../model/soon.ts'
import { createGenerations } from '../storage/generation.ts'
import {
  apiKeyDigestKey,
  apiKeyKey,
  memberKey,
  mocksOf,
  namespaceKey,
  organizationKey,
  registryGenerationKey,
  revocationKey,
  serverKey,
  signingKeysKey,
  under,
} from '../storage/keys.ts'
import type { Key, Store } from '../storage/store.ts'

export interface Registry {
  /** The registry as it is now; ask once a request and use it for that request. A promise only where it must be read. */
  current(): Soon<RegistrySnapshot>
}

export interface RegistrySnapshot {
  /** Places for what was derived from this generation alone, both bounded: callers by their Authorization header, */
  readonly callers: LRUCache<string, object>
  /** and whatever else, by its name. */
  readonly derived: LRUCache<string, object>
  apiKeyByDigest(digest: string): Promise<ApiKey | undefined>
  apiKey(keyId: string): Soon<ApiKey | undefined>
  hasOrganization(organizationId: string): Promise<boolean>
  role(organizationId: string, userId: string): Soon<Role | undefined>
  namespace(namespace: string): Soon<Namespace | undefined>
  /** The signing keys' record, sealed. */
  signingKeys(): Soon<Uint8Array | undefined>
  /** Was the token of this id revoked? */
  isRevoked(jti: string): Promise<boolean>
  /** The server's details as JSON, ready to be answered. */
  serverJson(qualifiedName: string): Soon<Uint8Array | undefined>
  /** What was recorded for mocks of the server, in the order of the fixtures. */
  recordedAnswers(qualifiedName: string): Promise<RecordedAnswer[]>
}

export function createRegistry(store: Pick<Store, 'get' | 'range' | 'stamp'>): Registry {
  const generations = createGenerations(store, () => registryGenerationKey)
  let generation = ''
  let snapshot = createSnapshot(store)

  function of(current: string): RegistrySnapshot {
    if (current !== generation || current === '') {
      generation = current
      // What an earlier request still holds stays as it was for that request; nothing is shared with it.
      snapshot = createSnapshot(store)
    }
    return snapshot
  }

  return {
    current: () => then(generations.current('registry'), of),
  }
}

/** Each record is read at most once a generation: an entry can be newer than the generation, never older. */
function createSnapshot(store: Pick<Store, 'get' | 'range'>): RegistrySnapshot {
  const records = new LRUCache<string, { value: unknown }>({
    maxSize: registryCacheBytesMax,
    sizeCalculation: ({ value }) => (value instanceof Uint8Array ? value.length + 256 : 512),
  })

  /** `name` is the record's in this map: names hold no NUL, so kinds and parts cannot run into each other. */
  function read<T>(name: string, key: () => Key, decode: (bytes: Uint8Array) => T): Soon<T | undefined> {
    const known = records.get(name)
    return known === undefined ? readAnew(name, key(), decode) : (known.value as T)
  }

  function readAnew<T>(name: string, key: Key, decode: (bytes: Uint8Array) => T): Soon<T | undefined> {
    return then(store.get(key), (bytes) => {
      const value = bytes === undefined ? undefined : decode(bytes)
      // Absence is not remembered: made-up names would push out what is real.
      if (value !== undefined) records.set(name, { value })
      return value
    })
  }
  const json = <T>(bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString()) as T
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()
  const apiKey = (keyId: string) => read(`key\0${keyId}`, () => apiKeyKey(keyId), json<ApiKey>)

  return {
    callers: new LRUCache({
      max: callersCachedMax,
      maxSize: callersCachedBytesMax,
      sizeCalculation: (_, header) => 1024 + 10 * header.length,
    }),
    derived: new LRUCache({ max: 10 }),
    apiKey,
    async apiKeyByDigest(digest) {
      const keyId = await read(`digest\0${digest}`, () => apiKeyDigestKey(digest), text)
      return keyId === undefined ? undefined : apiKey(keyId)
    },
    async hasOrganization(organizationId) {
      const key = () => organizationKey(organizationId)
      return (await read(`organization\0${organizationId}`, key, () => true)) === true
    },
    role(organizationId, userId) {
      const key = () => memberKey(organizationId, userId)
      return read(`member\0${organizationId}\0${userId}`, key, (bytes) => text(bytes) as Role)
    },
    signingKeys: () =>
      read(
        'signing keys',
        () => signingKeysKey,
        (bytes) => bytes,
      ),
    isRevoked: async (jti) =>
      (await read(
        `revoked\0${jti}`,
        () => revocationKey(jti),
        () => true,
      )) === true,
    namespace: (namespace) => read(`namespace\0${namespace}`, () => namespaceKey(namespace), json<Namespace>),
    serverJson: (qualifiedName) =>
      read(
        `server\0${qualifiedName}`,
        () => serverKey(qualifiedName),
        (bytes) => bytes,
      ),
    async recordedAnswers(qualifiedName) {
      const { entries } = await store.range({ ...under(mocksOf(qualifiedName)), limit: recordedAnswersMax })
      return entries.map(({ value }) => json<RecordedAnswer>(value))
    },
  }
}
