/**
 * Records of the directory as the store has them: the one place that writes and reads their values. A member's role,
 * the id behind an API key's digest and the end of a revocation are text; everything else is JSON.
 */

import type { ApiKey, Namespace, Organization, Role } from '../model/organization.ts'
import type { RecordedAnswer } from '../model/recorded-answer.ts'
import type { ServerDetail, ServerListing } from '../model/server.ts'
import type { View } from '../model/view.ts'
import { reading } from '../schema/json.ts'
import { asBuffer, textOf } from './bytes.ts'
import {
  foldedKey,
  keyOf,
  listingChangesKey,
  listingGroupOf,
  listingKey,
  listingsVersionKey,
  ownedKey,
} from './keys.ts'
import { parseKey } from './record-kinds.ts'
import type { Entry, Key } from './store.ts'
import { newVersion } from './versions.ts'

/** Writes of servers whose names are kept. Past it: a process that missed more reads groups of listings again. */
export const listingChangesKept = 100

/** The records that these values are. Not checked: only valid records are written, and checksums are verified. */
export const readOrganization: (value: Uint8Array) => Organization = jsonOf
export const readNamespace: (value: Uint8Array) => Namespace = jsonOf
export const readView: (value: Uint8Array) => View = jsonOf
export const readApiKey: (value: Uint8Array) => ApiKey = jsonOf
export const readServer: (value: Uint8Array) => ServerDetail = jsonOf
export const readListing: (value: Uint8Array) => ServerListing = jsonOf
export const readMock: (value: Uint8Array) => RecordedAnswer = jsonOf
export const readRole = (value: Uint8Array): Role => textOf(value) as Role
/** The id behind an API key's digest. */
export const readKeyId: (value: Uint8Array) => string = textOf

export function organizationEntry(organization: Organization): Entry {
  return jsonEntry(keyOf('organization', organization.organizationId), organization)
}

export function memberEntry(organizationId: string, userId: string, role: Role): Entry {
  return textEntry(keyOf('member', organizationId, userId), role)
}

export function namespaceEntry(namespace: Namespace): Entry {
  return jsonEntry(keyOf('namespace', namespace.namespace), namespace)
}

export function viewEntry(view: View): Entry {
  return jsonEntry(keyOf('view', view.namespace, view.name), view)
}

export function apiKeyEntry(record: ApiKey): Entry {
  return jsonEntry(keyOf('apiKey', record.keyId), record)
}

/** An API key's record by id, and its id by digest: the keyed hash of its text, in hex (`auth/api-key.ts`). */
export function apiKeyEntries(record: ApiKey, digest: string): readonly Entry[] {
  return [apiKeyEntry(record), textEntry(keyOf('apiKeyDigest', digest), record.keyId)]
}

/** The value is answered as it is stored (`GET /servers/{qualifiedName}`). */
export function serverEntry(server: ServerDetail): Entry {
  return jsonEntry(keyOf('server', server.qualifiedName), server)
}

/** `readServer` as work in turns: a server may have a megabyte. */
export function readingServer(value: Uint8Array): Generator<number, ServerDetail> {
  return reading(value.length, () => readServer(value))
}

export function listingEntry(listing: ServerListing): Entry {
  return jsonEntry(listingKey(listing.qualifiedName), listing)
}

/**
 * The versions that a write to the listings of these servers replaces, and the changes that it is added to: a line for
 * each write, with its version in hex and the names, the last one first. `changes`: as stored; without them they begin
 * anew, and whoever keeps listings reads the groups of these again.
 */
export function newListingVersions(qualifiedNames: Iterable<string>, changes?: Uint8Array): Entry[] {
  const names = [...qualifiedNames]
  if (names.length === 0) return []
  const version = newVersion(listingsVersionKey)
  const before = changes === undefined ? [] : textOf(changes).split('\n', listingChangesKept - 1)
  const line = [asBuffer(version.value).toString('hex'), ...(before.length > 0 ? names : [])].join(' ')
  const groups = new Set(names.map(listingGroupOf))
  return [
    version,
    textEntry(listingChangesKey, [line, ...before].join('\n')),
    ...[...groups].map((group) => newVersion(keyOf('listingGroupVersion', group))),
  ]
}

/** The servers whose listings were written after a version; undefined if the changes do not go back to it. */
export function listingsChangedSince(version: Uint8Array, changes: Uint8Array): Set<string> | undefined {
  const wanted = asBuffer(version).toString('hex')
  const changed = new Set<string>()
  for (const line of textOf(changes).split('\n')) {
    const [at, ...names] = line.split(' ')
    if (at === wanted) return changed
    for (const name of names) changed.add(name)
  }
  return undefined
}

/**
 * The index entries of a record of the directory: of a member by user, of a namespace by owner, of a live API key by
 * its user or organization. They are written and deleted with the record.
 */
export function indexKeysOf({ key, value }: Entry): Key[] {
  const parsed = parseKey(key)
  switch (parsed?.kind) {
    case 'member':
      return [keyOf('membership', parsed.userId, parsed.organizationId)]
    case 'namespace':
      return [
        ownedKey(readNamespace(value), parsed.namespace),
        ...(/[A-Z]/.test(parsed.namespace) ? [foldedKey(parsed.namespace)] : []),
      ]
    case 'apiKey': {
      const { userId, revokedAt } = readApiKey(value)
      return revokedAt === null ? [keyOf('heldApiKey', userId, parsed.keyId)] : []
    }
    case 'grant':
      return [keyOf('heldGrant', (JSON.parse(textOf(value)) as { userId: string }).userId, parsed.grantId)]
    default:
      return []
  }
}

export function withIndex(entry: Entry): Entry[] {
  return [entry, ...indexKeysOf(entry).map((key) => ({ key, value: nothing }))]
}

const nothing = new Uint8Array(0)

/** `position`: six digits, so that answers keep the order of the fixtures. */
export function mockEntry(position: string, mock: RecordedAnswer): Entry {
  return jsonEntry(keyOf('mock', mock.server, position), mock)
}

/** `until`, Unix seconds: by then the token and its children have expired. */
export function revocationEntry(jti: string, until: number): Entry {
  return textEntry(keyOf('revocation', jti), String(Math.ceil(until)))
}

/** Unix seconds; 0 for a token that is not revoked. */
export function readRevocation(value: Uint8Array | undefined): number {
  return value === undefined ? 0 : Number(textOf(value))
}

export function jsonEntry(key: Key, value: object): Entry {
  return textEntry(key, JSON.stringify(value))
}

function textEntry(key: Key, text: string): Entry {
  return { key, value: Buffer.from(text) }
}

export function jsonOf<T>(value: Uint8Array): T {
  return JSON.parse(textOf(value)) as T
}
