/**
 * Every kind of record: the letter that its keys begin with and their parts, the name in messages, and its schema if
 * the value is the JSON of one. Keys (`keys.ts`), names and the checks of `postern store verify` are made from this table;
 * the README says who writes and reads each kind.
 */

import type { TSchema } from '@sinclair/typebox'
import { Connection } from '../model/connection.ts'
import { ApiKey, Namespace, Organization } from '../model/organization.ts'
import { RecordedAnswer } from '../model/recorded-answer.ts'
import { ServerDetail, ServerListing } from '../model/server.ts'
import { View } from '../model/view.ts'
import { asBuffer } from './bytes.ts'
import type { Key } from './store.ts'

/** `small`: one read may take those of many callers. `large`: of any size. `index`: made from others, with no value. */
type Size = 'small' | 'large' | 'index'

/** `parts`: names of the parts after the letter, with NUL between. `name`: in messages, with parts in braces. */
const row =
  (size: Size) =>
  <const Parts extends readonly string[]>(letter: string, parts: Parts, name: string, schema?: TSchema) => ({
    size,
    letter,
    parts,
    name,
    schema,
  })

const small = row('small')
const large = row('large')
const index = row('index')

export const recordKinds = {
  /** The first start creates the operator key. A later one finds this, and creates none. */
  started: small('B', [], 'time of the first start'),
  /** Of the last server that ran on this store: the issuer (`iss`) of its tokens. */
  baseUrl: small('U', [], 'base URL'),
  directoryVersion: small('G', [], 'version of the directory'),
  organization: small('o', ['organizationId'], 'organization {organizationId}', Organization),
  member: small('m', ['organizationId', 'userId'], 'member {organizationId}/{userId}'),
  membership: index('v', ['userId', 'organizationId'], 'membership of {userId} in {organizationId}'),
  namespace: small('n', ['namespace'], 'namespace {namespace}', Namespace),
  view: large('z', ['namespace', 'name'], 'view {namespace}/{name}', View),
  /** A link to the registry of a namespace, by a keyed hash of its secret (`features/registry`). */
  registryLink: small('L', ['namespace', 'digest'], 'link to the registry of {namespace}'),
  /** The version of an entry of a namespace's registry; view '' for the endpoint of the namespace. */
  publishedEntry: small('H', ['namespace', 'view'], 'version of entry {view} in the registry of {namespace}'),
  owned: index('q', ['ownerKind', 'ownerId', 'namespace'], 'owner of namespace {namespace}'),
  folded: index('N', ['folded', 'namespace'], 'name of namespace {namespace} in small letters'),
  /** The namespace's record is gone, and some of its connections may not be yet. */
  deletingNamespace: small('D', ['namespace'], 'mark of namespace {namespace}, which is being deleted'),
  /**
   * When a namespace of this name was deleted last, or given to another owner (`ended-namespaces.ts`). A write that
   * makes a connection checks that it has not changed since the write was authorized: so none is left for the owner of
   * a namespace that is made later.
   */
  endedNamespace: small('E', ['namespace'], 'end of a namespace {namespace}'),
  place: large('P', ['record'], 'fixture of {record}'),
  apiKey: small('k', ['keyId'], 'API key {keyId}', ApiKey),
  heldApiKey: index('K', ['userId', 'keyId'], 'API key {keyId} of {userId}'),
  /** Changes when somebody ends all console sessions of the key: those that began before are void. */
  endedSessions: small('W', ['keyId'], 'end of the console sessions of API key {keyId}'),
  apiKeyDigest: small('h', ['digest'], 'hash of an API key {digest}'),
  server: large('s', ['qualifiedName'], 'server {qualifiedName}', ServerDetail),
  listing: large('t', ['group', 'qualifiedName'], 'listing of server {qualifiedName}', ServerListing),
  listingGroupVersion: small('b', ['group'], 'version of the listings of servers'),
  listingsVersion: small('S', ['changes'], 'version of the listings of servers'),
  mock: large('a', ['server', 'position'], 'mock {server}/{position}', RecordedAnswer),
  connection: large('c', ['namespace', 'connectionId'], 'connection {namespace}/{connectionId}', Connection),
  /** A connection's server and its sealed headers (`ConnectionPrivate`). Lists never read it. */
  connectionPrivate: large('p', ['namespace', 'connectionId'], 'private part of connection {namespace}/{connectionId}'),
  /** The definitions that its server listed last (`features/endpoint/kept-lists.ts`). */
  keptList: large('l', ['namespace', 'connectionId'], 'lists of connection {namespace}/{connectionId}'),
  /** Which definitions of its server somebody accepted (`features/pins/pin-record.ts`). */
  pins: large('C', ['namespace', 'connectionId'], 'pins of connection {namespace}/{connectionId}'),
  indexEntry: index('x', ['namespace', 'connectionId'], 'index entry of connection {namespace}/{connectionId}'),
  connectionsVersion: small('g', ['namespace'], 'version of the connections of {namespace}'),
  usage: small('u', ['namespace'], 'usage of namespace {namespace}'),
  revocation: small('r', ['jti'], 'revocation of token {jti}'),
  expiring: large('e', ['expires', 'digest'], 'expiring record {digest}'),
  grant: large('w', ['grantId'], 'grant {grantId}'),
  heldGrant: index('Q', ['userId', 'grantId'], 'grant {grantId} of {userId}'),
  /** A client that registered itself here (RFC 7591). */
  oauthClient: large('j', ['clientId'], 'registered client {clientId}'),
  /** A registered client that nobody has signed in with yet. Its id begins with a time, so the oldest come first. */
  unusedClient: large('i', ['clientId'], 'registered client {clientId}'),
  /** A client that registered us as its client: by the hash of its issuer and our redirect URI. */
  upstreamClient: large('d', ['digest'], 'client at an authorization server {digest}'),
  signingKeys: small('y', [], 'signing keys'),
  fixturesManifest: large('f', ['part'], 'list of the loaded fixtures'),
  /** If it is unchanged, the fixtures are not loaded again. */
  fixturesDigest: small('F', [], 'list of the loaded fixtures'),
  staged: large('A', [], 'list of namespaces that are being loaded'),
}

export type RecordKind = keyof typeof recordKinds

/** One text for each part of a kind's keys. */
export type PartsOf<K extends RecordKind> = Texts<(typeof recordKinds)[K]['parts']>
type Texts<Names extends readonly string[]> = { readonly [Index in keyof Names]: string }

export type ParsedKey = {
  [Kind in RecordKind]: { readonly kind: Kind } & {
    readonly [Part in (typeof recordKinds)[Kind]['parts'][number]]: string
  }
}[RecordKind]

/** Bytes of a term. 128 bits: finding two facts with the same term takes about 2^64 hashes. */
export const termBytes = 16

const kinds = Object.keys(recordKinds) as RecordKind[]
const byLetter = new Map(kinds.map((kind) => [recordKinds[kind].letter.charCodeAt(0), kind]))

/** The kind of a key; undefined for a letter that this version does not know. */
const kindOf = ([letter = 0]: Key): RecordKind | undefined => byLetter.get(letter)

const smallLetters = new Set(
  [...byLetter].flatMap(([letter, kind]) => (recordKinds[kind].size === 'large' ? [] : [letter])),
)

export const isSmall = ([letter = 0]: Key): boolean => smallLetters.has(letter)

/** The kinds of the directory's indexes (`indexKeysOf` in directory-records.ts). */
export const directoryIndexes = kinds.filter((kind) => recordKinds[kind].size === 'index' && kind !== 'indexEntry')

export const isDirectoryIndex = (key: Key): boolean => directoryIndexes.some((kind) => kind === kindOf(key))

/** Undefined for a kind letter that this version does not know. */
export function parseKey(key: Key): ParsedKey | undefined {
  const kind = kindOf(key)
  if (kind === undefined) return undefined
  // User ids are UTF-8. All other names are ASCII.
  const texts = asBuffer(key).toString('utf8', 1).split('\0')
  if (kind === 'place') texts.splice(0, texts.length, recordName(key.subarray(1)))
  // A term may contain NUL, so the id is located by length and not by splitting.
  if (kind === 'indexEntry')
    texts[1] = asBuffer(key).toString('latin1', 1 + (texts[0] as string).length + 1 + termBytes)
  return {
    kind,
    ...Object.fromEntries(recordKinds[kind].parts.map((part, index) => [part, texts[index] ?? ''])),
  } as ParsedKey
}

/** The name of a record in messages: `connection acme/notes`. */
export function recordName(key: Key): string {
  const parsed: Readonly<Record<string, string>> | undefined = parseKey(key)
  if (parsed === undefined) return `record ${asBuffer(key).toString('utf8').replaceAll('\0', '/')}`
  return recordKinds[parsed['kind'] as RecordKind].name.replace(/\{(\w+)\}/g, (_, part: string) => parsed[part] ?? '')
}
