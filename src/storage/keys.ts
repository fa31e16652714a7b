/**
 * Makes keys (`record-kinds.ts` has their kinds, and reads them). A key is one letter for its kind, followed by its
 * parts, separated by NUL. Names contain no control characters, so two parts can never be read as one.
 */

import { asBuffer, copyBytes } from './bytes.ts'
import { directoryIndexes, type PartsOf, type RecordKind, recordKinds, termBytes } from './record-kinds.ts'
import type { Key, Range } from './store.ts'

/** The key of a record: `keyOf('connection', namespace, connectionId)`. */
export function keyOf<K extends RecordKind>(kind: K, ...parts: PartsOf<K>): Key {
  const texts: readonly string[] = parts
  return Buffer.from(recordKinds[kind].letter + texts.join('\0'))
}

/** The beginning of all keys with these first parts: `prefixOf('connection', namespace)`. Without any: of a whole kind. */
export function prefixOf(kind: RecordKind, ...parts: readonly string[]): Key {
  return Buffer.from(recordKinds[kind].letter + [...parts, ''].join('\0'))
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

/** Replaced by every write to organizations, members, namespaces, API keys, servers, signing keys or revocations. */
export const directoryVersionKey = keyOf('directoryVersion')

export const ownedKey = (owner: Owner, namespace: string): Key => keyOf('owned', ...ownerParts(owner), namespace)
/** Prefix of the namespaces of one owner. */
export const ownedBy = (owner: Owner): Key => prefixOf('owned', ...ownerParts(owner))
/** Index: a namespace with capital letters, by its name in small ones. */
export const foldedKey = (namespace: string): Key => keyOf('folded', namespace.toLowerCase(), namespace)
/** Prefix of the namespaces that are written like this in small letters, and have capital ones. */
export const foldedLike = (namespace: string): Key => prefixOf('folded', namespace.toLowerCase())
/** The prefixes of the keys of the directory's indexes. */
export const directoryIndexKinds = directoryIndexes.map((kind) => prefixOf(kind))
export type Owner = { readonly organizationId: string } | { readonly userId: string }
const ownerParts = (owner: Owner): readonly [kind: string, id: string] =>
  'organizationId' in owner ? ['organization', owner.organizationId] : ['user', owner.userId]
/** Where the fixture of a record stands: `file: path`. Records that no fixture brought have none. */
export const placeKey = (record: Key): Key => Buffer.concat([prefixOf('place'), record])
/** Prefix of the servers of one namespace that have a part after the slash. */
export const serversIn = (namespace: string): Key => keyOf('server', `${namespace}/`)
/**
 * The facts about a server that lists and search show (`ServerListing`). Grouped by a hash of the name: after a write,
 * a process that keeps all listings reads a 256th of them again.
 */
export const listingKey = (qualifiedName: string): Key => keyOf('listing', listingGroupOf(qualifiedName), qualifiedName)
export const listingsVersionKey = keyOf('listingsVersion', '')
/** The listings that were written last, with versions (`newListingVersions`). */
export const listingChangesKey = keyOf('listingsVersion', 'changes')
/** `00` to `ff`. */
export const listingGroups = Array.from({ length: 256 }, (_, group) => Buffer.of(group).toString('hex'))
export const listingGroupOf = (qualifiedName: string): string =>
  listingGroups[Bun.hash.crc32(qualifiedName) & 0xff] as string
/** All signing keys, sealed, in one value. */
export const signingKeysKey = keyOf('signingKeys')

/** Namespaces whose connections are written ahead of the commit that shows them, one a line (`staged.ts`). */
export const stagedKey = keyOf('staged')

/**
 * A record that expires on its own: a browser session, a sign-in link, a sign-in attempt, an authorization code
 * (`auth/expiring-records.ts`). `expires`: Unix seconds. Ordered by it, so that expired records come first.
 */
export const expiringKey = (expires: number, digest: string): Key => keyOf('expiring', timeText(expires), digest)
/** The lower bound of those that expire at this time or later, in Unix seconds. */
export const expiringFrom = (expires: number): Key => prefixOf('expiring', timeText(expires))
/** Unix seconds until the year 5138, as text that sorts by time. */
const timeText = (seconds: number) => String(seconds).padStart(11, '0')
export const unusedClientIn = (key: Key): string => asBuffer(key).toString('latin1', 1)

/** The manifest: the keys of all records that the loaded fixtures brought, one a line, in parts of 500. */
export const manifestKey = (part: number): Key => keyOf('fixturesManifest', String(part).padStart(6, '0'))

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

/** Prefix of the index entries of one term in one namespace. The entries under it are ordered by connection id. */
export function termEntries(namespace: string, term: Uint8Array): Key {
  return Buffer.concat([prefixOf('indexEntry', namespace), term])
}
/** The key of one index entry. Its value is empty. */
export function termKey(namespace: string, term: Uint8Array, connectionId: string): Key {
  return Buffer.concat([prefixOf('indexEntry', namespace), term, Buffer.from(connectionId, 'latin1')])
}
/** A key as text, one character per byte: for Map and Set, which compare a Buffer by identity. */
export function latin1Key(key: Key): string {
  return asBuffer(key).toString('latin1')
}

/** The connection id at the end of a key, given the prefix before it (`prefixOf('connection', …)` or `termEntries`). */
export function idOfKey(prefix: Key, key: Key): string {
  return asBuffer(key).toString('latin1', prefix.length)
}

/** The namespace in a key of a connection, a private part or an index entry, without parsing the rest. */
export function namespaceIn(key: Key): string {
  return latin1Key(key).slice(1).split('\0', 1)[0] ?? ''
}
