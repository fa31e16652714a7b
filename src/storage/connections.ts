/**
 * Connections in the store. Each has a public record, stored as the JSON that lists return, one index entry for each
 * fact, and a private part under another key. One write changes them together.
 */

import { type Connection, type ConnectionRef, filterText } from '../model/connection.ts'
import { textOf } from './bytes.ts'
import { keyOf, latin1Key, termDigest, termKey } from './keys.ts'
import type { Entry, Key, Store, Write } from './store.ts'
import { indexBytesOf, type Usage, usageCount } from './usage.ts'
import { newVersion } from './versions.ts'

const nothing = new Uint8Array(0)

/** The index terms of a connection: one for its name, its URL and each metadata pair. */
export function termsOf(connection: Pick<Connection, 'name' | 'mcpUrl' | 'metadata'>): Uint8Array[] {
  const terms = [termDigest('name', '', connection.name)]
  if (connection.mcpUrl !== null) terms.push(termDigest('mcpUrl', '', connection.mcpUrl))
  for (const [key, value] of Object.entries(connection.metadata ?? {})) {
    terms.push(termDigest(typeof value === 'string' ? 'string' : 'json', key, filterText(value)))
  }
  return terms
}

/** The stored bytes of a record: exactly the JSON that a list returns for it. */
export function connectionBytes(connection: Connection): Uint8Array {
  return Buffer.from(JSON.stringify(connection))
}

export function connectionEntry(namespace: string, connection: Connection): Entry {
  return { key: keyOf('connection', namespace, connection.connectionId), value: connectionBytes(connection) }
}

/** The index entries of a connection. Their values are empty. */
export function* indexEntries(namespace: string, connection: Connection): Generator<Entry> {
  for (const term of termsOf(connection)) {
    yield { key: termKey(namespace, term, connection.connectionId), value: nothing }
  }
}

/** A record beside a connection, which is written and deleted with it: its bytes, and a hash of it. */
interface Beside {
  readonly bytes: number
  readonly id: string
}
/** The kinds of such records, by the member of the private part. */
const besideKinds = { list: 'keptList', pins: 'pins' } as const
const besides = ['list', 'pins'] as const

/** The private part of a connection. No list returns it. */
export interface ConnectionPrivate {
  /** qualifiedName of its registered server. */
  readonly server?: string
  /** Headers to send upstream, sealed, in base64url. */
  readonly headers?: string
  /** The values that a person entered for the server, sealed, in base64url (`auth/sealed-parts.ts`). */
  readonly input?: string
  /** The OAuth client that was given with the connection, sealed, in base64url. */
  readonly oauth?: string
  /** The tokens of somebody who has signed in, sealed, in base64url (`features/upstream-sign-in`). */
  readonly tokens?: string
  /** Until when one process refreshes the tokens and others wait, in milliseconds since 1970. */
  readonly refreshUntil?: number
  /** When a refresh that failed may be tried again, in milliseconds since 1970. */
  readonly refreshAfter?: number
  /** The scopes that the server wants beyond those of its token, with those: asked for at the next sign-in. */
  readonly wantedScope?: string
  /** When the sign-in ends, if nothing can renew it: an ISO 8601 time. */
  readonly signedInUntil?: string
  /** The kept lists of its server. `definitions`: how many they have. `era`: left out for a server with a handshake. */
  readonly list?: Beside & { readonly definitions: number; readonly era?: 'stateless' }
  /** The definitions of its server that somebody accepted. */
  readonly pins?: Beside
  /** When its server was contacted last, in milliseconds since 1970; an hour too early at most. */
  readonly contactedAt?: number
  /** Since when its status is as it is, in milliseconds since 1970. */
  readonly statusSince?: number
  /** How often somebody has signed in or out. Tickets and attempts of before are void. */
  readonly setups?: number
}

/** The private part after a contact that gave the status of `after`. */
export function contacted(
  privatePart: ConnectionPrivate,
  before: Connection | undefined,
  after: Connection,
  at: number,
): ConnectionPrivate {
  const isSame = JSON.stringify(before?.status) === JSON.stringify(after.status)
  return { ...privatePart, contactedAt: at, ...(!isSame && { statusSince: at }) }
}

/** The record of a connection, and its private part, as they are stored. */
export interface ConnectionRecord {
  readonly bytes: Uint8Array
  readonly privateBytes: Uint8Array | undefined
}

/** A stored connection and the bytes that it was read from. A later write checks that these bytes are unchanged. */
export interface StoredConnection extends ConnectionRecord {
  readonly connection: Connection
  readonly privatePart: ConnectionPrivate
}

/** Whether two reads found the same connection: nobody has made it again, or changed its URL, in between. */
export function isSameConnection(a: StoredConnection | undefined, b: StoredConnection | undefined): boolean {
  return a?.connection.createdAt === b?.connection.createdAt && a?.connection.mcpUrl === b?.connection.mcpUrl
}

/** Reads the record and the private part in one snapshot. Undefined if the connection does not exist. */
export async function findConnection(
  store: Pick<Store, 'getMany'>,
  namespace: string,
  connectionId: string,
): Promise<StoredConnection | undefined> {
  return (await findConnections(store, [{ namespace, connectionId }]))[0]
}

/** The same for many, in one snapshot and the order of `refs`. */
export async function findConnections(
  store: Pick<Store, 'getMany'>,
  refs: readonly ConnectionRef[],
): Promise<(StoredConnection | undefined)[]> {
  return (await findRecords(store, refs)).map(decoded)
}

/** The same, not decoded yet. */
export async function findRecords(
  store: Pick<Store, 'getMany'>,
  refs: readonly ConnectionRef[],
): Promise<(ConnectionRecord | undefined)[]> {
  const keys = refs.flatMap(({ namespace, connectionId }) => [
    keyOf('connection', namespace, connectionId),
    keyOf('connectionPrivate', namespace, connectionId),
  ])
  const found = await store.getMany(keys)
  return refs.map((_, index) => {
    const [bytes, privateBytes] = [found[index * 2], found[index * 2 + 1]]
    return bytes && { bytes, privateBytes }
  })
}

export function decoded(record: ConnectionRecord | undefined): StoredConnection | undefined {
  if (record === undefined) return undefined
  const { bytes, privateBytes } = record
  const privatePart = (privateBytes === undefined ? {} : JSON.parse(textOf(privateBytes))) as ConnectionPrivate
  return { connection: readConnection(bytes), privatePart, bytes, privateBytes }
}

/** The bytes that a connection adds to its namespace's usage. */
export function bytesOf(namespace: string, { connection, privatePart, bytes, privateBytes }: StoredConnection): number {
  return bytes.length + (privateBytes?.length ?? 0) + besideBytes(privatePart) + indexBytesOf(namespace, connection)
}

function besideBytes(privatePart: ConnectionPrivate | undefined): number {
  return besides.reduce((sum, name) => sum + (privatePart?.[name]?.bytes ?? 0), 0)
}

/**
 * The write that replaces `before` with `after`, with index, version and usage; undefined means that there is no
 * connection. The write conflicts if the stored connection is no longer `before`, and is refused as full if the change
 * would exceed `quota`. A deletion may use the reserved disk space.
 */
export function connectionChange(
  ref: ConnectionRef,
  before: StoredConnection | undefined,
  after: NewConnection | undefined,
  quota?: Usage,
): Write {
  const { namespace, connectionId } = ref
  const { puts, deletes, usage } = connectionEdits(ref, before, after)
  return {
    checks: [
      { key: keyOf('connection', namespace, connectionId), value: before?.bytes ?? null },
      { key: keyOf('connectionPrivate', namespace, connectionId), value: before?.privateBytes ?? null },
    ],
    deletes,
    counts: [usageCount(namespace, usage, quota)],
    puts: [newConnectionsVersion(namespace), ...puts],
    fromReserve: after === undefined ? 'deletion' : undefined,
  }
}

export type NewConnection = Pick<StoredConnection, 'connection' | 'privatePart'>

/** The entries with which `after` replaces `before`, deletes first, and what that changes of the namespace's usage. */
export function connectionEdits(
  { namespace, connectionId }: ConnectionRef,
  before: StoredConnection | undefined,
  after: NewConnection | undefined,
): { readonly puts: readonly Entry[]; readonly deletes: readonly Key[]; readonly usage: Partial<Usage> } {
  const key = keyOf('connection', namespace, connectionId)
  const privateRecordKey = keyOf('connectionPrivate', namespace, connectionId)
  const [former, next] = [indexOf(namespace, before?.connection), indexOf(namespace, after?.connection)]
  const records: Entry[] = []
  if (after !== undefined) {
    records.push(connectionEntry(namespace, after.connection))
    if (Object.keys(after.privatePart).length > 0) {
      records.push({ key: privateRecordKey, value: Buffer.from(JSON.stringify(after.privatePart)) })
    }
  }
  const isDropped = (name: (typeof besides)[number]) =>
    before?.privatePart[name] !== undefined && after?.privatePart[name] === undefined
  const index = after === undefined ? 0 : indexBytesOf(namespace, after.connection)
  const taken = before === undefined ? 0 : bytesOf(namespace, before)
  const bytes = records.reduce((sum, { value }) => sum + value.length, index + besideBytes(after?.privatePart) - taken)
  const connections = (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1)
  return {
    // Tokens are renewed and statuses recorded all the time, and change nothing of the index, which is what takes long.
    deletes: [
      ...onlyIn(former, next).map((entry) => entry.key),
      ...(before === undefined ? [] : [key, privateRecordKey]),
      ...besides.filter(isDropped).map((name) => keyOf(besideKinds[name], namespace, connectionId)),
    ],
    puts: [...records, ...onlyIn(next, former)],
    usage: { connections, bytes },
  }
}

function indexOf(namespace: string, connection: Connection | undefined): ReadonlyMap<string, Entry> {
  const entries = connection === undefined ? [] : [...indexEntries(namespace, connection)]
  return new Map(entries.map((entry) => [latin1Key(entry.key), entry]))
}

function onlyIn(one: ReadonlyMap<string, Entry>, other: ReadonlyMap<string, Entry>): Entry[] {
  return [...one].filter(([key]) => !other.has(key)).map(([, entry]) => entry)
}

/** Keys that one write of `deletionOf` deletes: PostgreSQL locks its table for more. Past it: another write. */
export const deletedKeysMax = 490
/**
 * Index terms that one write of `deletionOf` changes, beyond the first connection: the store changes a part of the
 * index for each, in up to 40 µs of the event loop. Past it: another write.
 */
const changedTermsMax = 100

/**
 * The write that deletes the first of these connections of a namespace, as many as one write takes: together they
 * change a part of the index once. It conflicts if one of them has changed, and then deletes none.
 */
export function deletionOf(namespace: string, connections: readonly StoredConnection[]) {
  const changes: Write[] = []
  const deletes: Key[] = []
  const terms = new Set<string>()
  for (const stored of connections) {
    const { connectionId } = stored.connection
    const change = connectionChange({ namespace, connectionId }, stored, undefined)
    const more = [...(change.deletes ?? [])]
    for (const term of termsOf(stored.connection)) terms.add(latin1Key(term))
    const isFull = deletes.length + more.length > deletedKeysMax || terms.size > changedTermsMax
    if (changes.length > 0 && isFull) break
    changes.push(change)
    deletes.push(...more)
  }
  const bytes = changes.reduce((sum, { counts: [usage] = [] }) => sum + (usage?.add[1] ?? 0), 0)
  const write: Write = {
    checks: changes.flatMap(({ checks = [] }) => checks),
    // In order, so that the store reads and writes each part of the index once.
    deletes: deletes.sort(Buffer.compare),
    counts: [usageCount(namespace, { connections: -changes.length, bytes })],
    puts: [newConnectionsVersion(namespace)],
    fromReserve: 'deletion',
  }
  return { write, deleted: connections.slice(0, changes.length) }
}

/** The new version. Every write that changes a namespace's connections must put it. */
export function newConnectionsVersion(namespace: string): Entry {
  return newVersion(keyOf('connectionsVersion', namespace))
}

/** Decodes a stored record. Not checked: only valid records are written, and the engine verifies checksums. */
export function readConnection(bytes: Uint8Array): Connection {
  return JSON.parse(textOf(bytes)) as Connection
}
