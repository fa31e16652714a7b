/**
 * Makes keys (`record-kinds.ts` has their kinds, and reads them). A key is one letter for its kind, followed by its
 * parts, separated by NUL. Names contain no control characters, so two parts can never be read as one.
 */

import { asBuffer, copyBytes } from './bytes.ts'
import { directoryIndexes, type RecordKind, recordKinds, termBytes } from './record-kinds.ts'
import type { Key, Range } from './store.ts'

function key(kind: RecordKind, ...parts: readonly string[]): Key {
  return Buffer.from(recordKinds[kind].letter + parts.join('\0'))
}

/** Appends text to a prefix. The text must be ASCII: one byte is allocated for each character. */
function withSuffix(prefix: Key, text: string): Key {
  const bytes = Buffer.allocUnsafe(prefix.length + text.length)
  bytes.set(prefix)
  bytes.write(text, prefix.length, 'latin1')
  return bytes
}

/**
 * All keys with this prefix. The upper bound is the prefix with its last byte raised by one; trailing 0xff bytes cannot
 * be raised and are dropped. Throws for a prefix that consists of 0xff only.
 */
export function prefixRange(prefix: Key): Omit<Range, 'limit'> {
  let end = prefix.length
  while (prefix[end - 1] === 0xff) end -= 1
  if (end === 0) throw new Error('a prefix of 0xff bytes has no end')
  const lt = copyBytes(prefix, 0, end)
  lt[end - 1] = (prefix[end - 1] as number) + 1
  return { gte: prefix, lt }
}

/**
 * Version of the directory (organizations, members, namespaces, API keys, servers, signing keys, revocations). Every
 * write to one of them replaces it.
 */
export const directoryVersionKey = key('directoryVersion')
/** Time of the first start, which creates the operator key. A later start finds it and creates none. */
export const startedKey = key('started')
/** Base URL of the last server that ran on this store: the issuer (`iss`) of its tokens. */
export const baseUrlKey = key('baseUrl')
/** Digest of the loaded fixtures. If it is unchanged, they are not loaded again. */
export const fixturesDigestKey = key('fixturesDigest')

export const organizationKey = (organizationId: string): Key => key('organization', organizationId)
export const memberKey = (organizationId: string, userId: string): Key => key('member', organizationId, userId)
/** Prefix of all members. */
export const members = key('member')
/** Prefix of the members of one organization. */
export const membersOf = (organizationId: string): Key => key('member', organizationId, '')
/** Index: the organizations of a user. Its value is empty, as those of all indexes. */
export const membershipKey = (userId: string, organizationId: string): Key => key('membership', userId, organizationId)
/** Prefix of the memberships of one user. */
export const membershipsOf = (userId: string): Key => key('membership', userId, '')
export const namespaceKey = (namespace: string): Key => key('namespace', namespace)
/** Prefix of all namespaces. */
export const namespaces = key('namespace')
/** Index: the namespaces of an owner. */
export const ownedKey = (owner: Owner, namespace: string): Key => key('owned', ...ownerParts(owner), namespace)
/** Prefix of the namespaces of one owner. */
export const ownedBy = (owner: Owner): Key => key('owned', ...ownerParts(owner), '')
/** Index: a namespace with capital letters, by its name in small ones. */
export const foldedKey = (namespace: string): Key => key('folded', namespace.toLowerCase(), namespace)
/** Prefix of the namespaces that are written like this in small letters, and have capital ones. */
export const foldedLike = (namespace: string): Key => key('folded', namespace.toLowerCase(), '')
/** Prefixes of the directory's indexes. */
export const directoryIndexKinds = directoryIndexes.map((kind) => key(kind))
/** The range of the namespaces of one owner. */
export const namespacesOwnedBy = (owner: Owner): Omit<Range, 'limit'> => prefixRange(ownedBy(owner))
/** The owner of a namespace. */
export type Owner = { readonly organizationId: string } | { readonly userId: string }
const ownerParts = (owner: Owner) =>
  'organizationId' in owner ? (['organization', owner.organizationId] as const) : (['user', owner.userId] as const)
/** Marks a namespace that is being deleted: its record is gone, and some of its connections may not be yet. */
export const deletingKey = (namespace: string): Key => key('deletingNamespace', namespace)
/** Prefix of all these marks. */
export const deleting = key('deletingNamespace')
/**
 * When a namespace of this name was deleted last, as a random value. A write that makes a connection checks that it has
 * not changed since the write was authorized: so none is left for the owner of a namespace that is made later.
 */
export const endedKey = (namespace: string): Key => key('endedNamespace', namespace)
/** Index: the API keys of an organization. */
export const organizationApiKeyKey = (organizationId: string, keyId: string): Key =>
  key('organizationApiKey', organizationId, keyId)
/** Prefix of the API keys of one organization. */
export const organizationApiKeys = (organizationId: string): Key => key('organizationApiKey', organizationId, '')
/** Where the fixture of a record stands: `file: path`. Records that no fixture brought have none. */
export const placeKey = (record: Key): Key => Buffer.concat([key('place'), record])
export const serverKey = (qualifiedName: string): Key => key('server', qualifiedName)
/** Prefix of all servers. */
export const servers = key('server')
/** Prefix of the servers of one namespace that have a part after the slash. */
export const serversIn = (namespace: string): Key => key('server', `${namespace}/`)
/**
 * The facts about a server that lists and search show (`ServerListing`). Grouped by a hash of the name: after a write,
 * a process that keeps all listings reads a 256th of them again.
 */
export const listingKey = (qualifiedName: string): Key => key('listing', listingGroupOf(qualifiedName), qualifiedName)
/** Prefix of all listings. */
export const listings = key('listing')
/** Prefix of the listings of a group. */
export const listingsIn = (group: string): Key => key('listing', group, '')
/** Version of the listings of a group. Every write to one of them replaces it. */
export const listingGroupVersionKey = (group: string): Key => key('listingGroupVersion', group)
/** Version of all listings. */
export const listingsVersionKey = key('listingsVersion')
/** The listings that were written last, with versions (`newListingVersions`). */
export const listingChangesKey = key('listingsVersion', 'changes')
/** `00` to `ff`. */
export const listingGroupOf = (qualifiedName: string): string => hexByte(Bun.hash.crc32(qualifiedName) & 0xff)
export const listingGroups = Array.from({ length: 256 }, (_, group) => hexByte(group))
function hexByte(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
export const apiKeyKey = (keyId: string): Key => key('apiKey', keyId)
/** Prefix of all API key records. */
export const apiKeys = key('apiKey')
/** Maps the keyed hash of an API key (hex) to its key id. */
export const apiKeyDigestKey = (digest: string): Key => key('apiKeyDigest', digest)
/** Maps a token's id (`jti`) to the end of its revocation, in Unix seconds as decimal text. */
export const revocationKey = (jti: string): Key => key('revocation', jti)
/** Prefix of all revocations. */
export const revocations = key('revocation')
/** All signing keys, sealed, in one value. */
export const signingKeysKey = key('signingKeys')
/** Prefix of the recorded answers of one server's mocks. */
export const mocksOf = (server: string): Key => key('mock', server, '')
export const mockKey = (server: string, position: string): Key => key('mock', server, position)

/** Prefix of all connections, in every namespace. */
export const connections = key('connection')
/** Prefix of the private parts of all connections (`ConnectionPrivate`). */
export const privates = key('connectionPrivate')
export const connectionKey = (namespace: string, connectionId: string): Key =>
  key('connection', namespace, connectionId)
/** Equals `latin1Key(connectionKey(…))`, without building the bytes first. */
export const connectionLatin1Key = (namespace: string, connectionId: string): string => `c${namespace}\0${connectionId}`
/** Prefix of the connections of one namespace. */
export const connectionsOf = (namespace: string): Key => key('connection', namespace, '')
/** Prefix of the private parts of one namespace's connections. */
export const privatesOf = (namespace: string): Key => key('connectionPrivate', namespace, '')
/** The private part of a connection (`ConnectionPrivate`): its server and its sealed headers. Lists never read it. */
export const connectionPrivateKey = (namespace: string, connectionId: string): Key =>
  key('connectionPrivate', namespace, connectionId)
/** Version of a namespace's connections. Every write to one of them replaces it. */
export const connectionsVersionKey = (namespace: string): Key => key('connectionsVersion', namespace)

/** Usage of a namespace, as three decimals: connections, bytes of its connections and servers, servers (`usage.ts`). */
export const usageKey = (namespace: string): Key => key('usage', namespace)
/** Prefix of all usages. */
export const usages = key('usage')
/**
 * Namespaces whose connections are being written ahead of the commit that makes them visible, one a line (`staged.ts`).
 */
export const stagedKey = key('staged')

/**
 * A record that expires on its own: a browser session, a login link, a sign-in attempt, an authorization code
 * (`auth/expiring-records.ts`). `expires`: Unix seconds. Ordered by it, so that expired records come first.
 */
export const expiringKey = (expires: number, digest: string): Key => key('expiring', timeText(expires), digest)
/** Prefix of all of them. */
export const expiringRecords = key('expiring')
/** The lower bound of those that expire at this time or later, in Unix seconds. */
export const expiringFrom = (expires: number): Key => key('expiring', timeText(expires))
/** Unix seconds until the year 5138, as text that sorts by time. */
const timeText = (seconds: number) => String(seconds).padStart(11, '0')
/** A client that registered us as its client: by the hash of its issuer and our redirect URI. */
export const upstreamClientKey = (digest: string): Key => key('upstreamClient', digest)
export const upstreamClients = key('upstreamClient')
/** The grant of a client that signed in here (`features/authorization`). */
export const grantKey = (grantId: string): Key => key('grant', grantId)
/** Prefix of all grants. */
export const grants = key('grant')
/** A client that registered itself here (RFC 7591). */
export const oauthClientKey = (clientId: string): Key => key('oauthClient', clientId)
/** Prefix of all these clients. */
export const oauthClients = key('oauthClient')
/** A registered client that nobody has signed in with yet. Its id begins with a time, so the oldest come first. */
export const unusedClientKey = (clientId: string): Key => key('unusedClient', clientId)
/** The id of an unused client, from its key. */
export const unusedClientIn = (key: Key): string => asBuffer(key).toString('latin1', 1)
/** Prefix of all these clients. */
export const unusedClients = key('unusedClient')

/** The manifest: the keys of all records that the loaded fixtures brought, one a line, in parts of 500. */
export const manifestKey = (part: number): Key => key('fixturesManifest', String(part).padStart(6, '0'))
/** Prefix of all parts of the manifest. */
export const manifest = key('fixturesManifest')

/**
 * The term of one fact of a connection. Hashing gives keys of one length for values of any length. `kind` separates a
 * string from the JSON text of another value: the string `"1"` and the number `1` have the same text.
 */
export function termDigest(kind: 'name' | 'mcpUrl' | 'string' | 'json', name: string, value: string): Uint8Array {
  // Not cached: most facts of a load occur once, and a failed cache lookup costs more than the hash.
  Bun.SHA256.hash(`${kind}\0${name.length}\0${name}${value}`, digest)
  return digest.slice(0, termBytes)
}
const digest = new Uint8Array(32)

/** Prefix of all index entries. */
export const indexKind = key('indexEntry')
/** Prefix of the index entries of one namespace. */
export const termsIn = (namespace: string): Key => key('indexEntry', namespace, '')
/** Prefix of the index entries of one term in one namespace. The entries under it are ordered by connection id. */
export function termEntries(namespace: string, term: Uint8Array): Key {
  return Buffer.concat([key('indexEntry', namespace, ''), term])
}
/** The key of one index entry. Its value is empty. */
export function termKey(namespace: string, term: Uint8Array, connectionId: string): Key {
  return withSuffix(termEntries(namespace, term), connectionId)
}
/** Writes many index keys of one namespace into the caller's buffers, without an allocation for each. */
export function termKeyWriter(namespace: string) {
  const prefix = key('indexEntry', namespace, '')
  return {
    lengthOf: (connectionId: string) => prefix.length + termBytes + connectionId.length,
    /**
     * Writes one key at `start` of `target`; its term is copied from `terms` at `termAt`. Returns the end of the key.
     */
    write(target: Buffer, start: number, terms: Buffer, termAt: number, connectionId: string): number {
      target.set(prefix, start)
      const termStart = start + prefix.length
      terms.copy(target, termStart, termAt, termAt + termBytes)
      return termStart + termBytes + target.write(connectionId, termStart + termBytes, 'latin1')
    },
  }
}

/** A key as text, one character per byte: for Map and Set, which compare a Buffer by identity. */
export function latin1Key(key: Key): string {
  return asBuffer(key).toString('latin1')
}

/** The connection id at the end of a key, given the prefix before it (`connectionsOf` or `termEntries`). */
export function idOfKey(prefix: Key, key: Key): string {
  return asBuffer(key).toString('latin1', prefix.length)
}

/** The namespace in a key of a connection, a private part or an index entry, without parsing the rest. */
export function namespaceIn(key: Key): string {
  return latin1Key(key).slice(1).split('\0', 1)[0] ?? ''
}
