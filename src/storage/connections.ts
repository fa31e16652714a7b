/**
 * Connections in the store: the public record as the JSON that lists answer, an index entry for each
 * searchable fact, and what is not public beside them. All in one write.
 */

import { type Connection, filterText } from '../model/connection.ts'
import { connectionKey, connectionPrivateKey, connectionsVersionKey, termDigest, termKey, usageKey } from './keys.ts'
import { asBuffer, type Count, type Entry, type Store, type Write } from './store.ts'
import { newVersion } from './versions.ts'

const nothing = new Uint8Array(0)

/** The index terms of a connection: its name, its URL and each pair of its metadata. */
export function termsOf(connection: Pick<Connection, 'name' | 'mcpUrl' | 'metadata'>): Uint8Array[] {
  const terms = [termDigest('name', '', connection.name)]
  if (connection.mcpUrl !== null) terms.push(termDigest('mcpUrl', '', connection.mcpUrl))
  for (const [key, value] of Object.entries(connection.metadata ?? {})) {
    terms.push(termDigest(typeof value === 'string' ? 'string' : 'json', key, filterText(value)))
  }
  return terms
}

/** The record's bytes: exactly what a list answers for it. */
export function connectionBytes(connection: Connection): Uint8Array {
  return Buffer.from(JSON.stringify(connection))
}

export function connectionEntry(namespace: string, connection: Connection): Entry {
  return { key: connectionKey(namespace, connection.connectionId), value: connectionBytes(connection) }
}

export function* indexEntries(namespace: string, connection: Connection): Generator<Entry> {
  for (const term of termsOf(connection)) {
    yield { key: termKey(namespace, term, connection.connectionId), value: nothing }
  }
}

/** What a connection has beside its public record. */
export interface ConnectionPrivate {
  /** The registered server it is of. */
  readonly server?: string
  /** Headers that go upstream, sealed, base64url. */
  readonly headers?: string
}

/** A connection as it is stored, with the bytes it was read from: what a write checks that nobody has changed. */
export interface StoredConnection {
  readonly connection: Connection
  readonly privatePart: ConnectionPrivate
  readonly bytes: Uint8Array
  readonly privateBytes: Uint8Array | undefined
}

export async function findConnection(
  store: Pick<Store, 'getMany'>,
  namespace: string,
  connectionId: string,
): Promise<StoredConnection | undefined> {
  const keys = [connectionKey(namespace, connectionId), connectionPrivateKey(namespace, connectionId)]
  const [bytes, privateBytes] = await store.getMany(keys)
  if (bytes === undefined) return undefined
  const privatePart =
    privateBytes === undefined ? {} : (JSON.parse(asBuffer(privateBytes).toString()) as ConnectionPrivate)
  return { connection: readConnection(bytes), privatePart, bytes, privateBytes }
}

/** What a connection counts for. */
export function bytesOf({ bytes, privateBytes }: StoredConnection): number {
  return bytes.length + (privateBytes?.length ?? 0)
}

/** What a namespace may hold: connections, and bytes of them with what is beside them. */
export interface Quota {
  readonly connections: number
  readonly bytes: number
}

/** Adds so many connections and bytes to what a namespace holds; either may be below zero. */
export function usageCount(namespace: string, connections: number, bytes: number, quota?: Quota): Count {
  return {
    key: usageKey(namespace),
    add: [connections, bytes],
    ...(quota !== undefined && { most: [quota.connections, quota.bytes] }),
  }
}

/**
 * The write that puts `after` in the place of `before`, index, generation and usage with it; either may be missing. It
 * happens only if the connection is still as `before` was read, and with a quota only where that has room for it.
 */
export function connectionChange(
  namespace: string,
  connectionId: string,
  before: StoredConnection | undefined,
  after: Pick<StoredConnection, 'connection' | 'privatePart'> | undefined,
  quota?: Quota,
): Write {
  const key = connectionKey(namespace, connectionId)
  const besideKey = connectionPrivateKey(namespace, connectionId)
  const gone = before === undefined ? [] : [...indexEntries(namespace, before.connection)].map((entry) => entry.key)
  const records: Entry[] = []
  if (after !== undefined) {
    records.push(connectionEntry(namespace, after.connection))
    if (Object.keys(after.privatePart).length > 0) {
      records.push({ key: besideKey, value: Buffer.from(JSON.stringify(after.privatePart)) })
    }
  }
  const added = records.reduce((sum, { value }) => sum + value.length, before === undefined ? 0 : -bytesOf(before))
  const count = (after === undefined ? 0 : 1) - (before === undefined ? 0 : 1)
  return {
    checks: [
      { key, value: before?.bytes ?? null },
      { key: besideKey, value: before?.privateBytes ?? null },
    ],
    // Deletes come before puts, so what stays is put again.
    deletes: [...gone, ...(before === undefined ? [] : [key, besideKey])],
    counts: [usageCount(namespace, count, added, quota)],
    puts: [
      newConnectionsVersion(namespace),
      ...records,
      ...(after === undefined ? [] : indexEntries(namespace, after.connection)),
    ],
    fromReserve: after === undefined,
  }
}

/** Put with every change of a namespace's connections. */
export function newConnectionsVersion(namespace: string): Entry {
  return newVersion(connectionsVersionKey(namespace))
}

export function readConnection(bytes: Uint8Array): Connection {
  return JSON.parse(asBuffer(bytes).toString()) as Connection
}
