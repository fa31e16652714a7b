/**
 * Connections in the store: the public record as the JSON that lists answer, an index entry for each
 * searchable fact, and what is not public beside them. All in one write.
 */

import { randomBytes } from 'node:crypto'
import type { Connection } from '../model/connection.ts'
import { filterText } from '../policy/metadata.ts'
import { connectionKey, connectionPrivateKey, pageGenerationKey, termDigest, termKey } from './keys.ts'
import { asBuffer, type Entry, type Key, type Store, type Write } from './store.ts'

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
export interface PrivatePart {
  /** The registered server it is of. */
  readonly server?: string
  /** Headers that go upstream, sealed, base64url. */
  readonly headers?: string
}

/** A connection as it is stored, with the bytes it was read from: what a write checks that nobody has changed. */
export interface StoredConnection {
  readonly connection: Connection
  readonly beside: PrivatePart
  readonly bytes: Uint8Array
  readonly besideBytes: Uint8Array | undefined
}

export async function findConnection(
  store: Pick<Store, 'getMany'>,
  namespace: string,
  connectionId: string,
): Promise<StoredConnection | undefined> {
  const keys = [connectionKey(namespace, connectionId), connectionPrivateKey(namespace, connectionId)]
  const [bytes, besideBytes] = await store.getMany(keys)
  if (bytes === undefined) return undefined
  const beside = besideBytes === undefined ? {} : (JSON.parse(asBuffer(besideBytes).toString()) as PrivatePart)
  return { connection: readConnection(bytes), beside, bytes, besideBytes }
}

/**
 * The write that puts `after` in the place of `before`, index and generation with it; either may be missing. It
 * happens only if the connection is still as `before` was read.
 */
export function connectionChange(
  namespace: string,
  connectionId: string,
  before: StoredConnection | undefined,
  after: Pick<StoredConnection, 'connection' | 'beside'> | undefined,
): Write {
  const key = connectionKey(namespace, connectionId)
  const besideKey = connectionPrivateKey(namespace, connectionId)
  const gone = before === undefined ? [] : [...indexEntries(namespace, before.connection)].map((entry) => entry.key)
  const puts: Entry[] = [newPageGeneration(namespace)]
  if (after !== undefined) {
    puts.push(connectionEntry(namespace, after.connection), ...indexEntries(namespace, after.connection))
    if (Object.keys(after.beside).length > 0) {
      puts.push({ key: besideKey, value: Buffer.from(JSON.stringify(after.beside)) })
    }
  }
  return {
    checks: [
      { key, value: before?.bytes ?? null },
      { key: besideKey, value: before?.besideBytes ?? null },
    ],
    // Deletes come before puts, so what stays is put again.
    deletes: [...gone, ...(before === undefined ? [] : [key, besideKey])],
    puts,
  }
}

/** Put with every change of a namespace's connections, so that no page made before it is taken for current. */
export function newGeneration(key: Key): Entry {
  return { key, value: randomBytes(12) }
}

export function newPageGeneration(namespace: string): Entry {
  return newGeneration(pageGenerationKey(namespace))
}

export function readConnection(bytes: Uint8Array): Connection {
  return JSON.parse(asBuffer(bytes).toString()) as Connection
}
