/**
 * Connections in the store: the public record as the JSON that lists answer, an index entry for each
 * searchable fact, and what is not public beside them. All in one write.
 */

import { randomBytes } from 'node:crypto'
import type { Connection } from '../model/connection.ts'
import { filterText } from '../policy/metadata.ts'
import { connectionKey, pageGenerationKey, termDigest, termKey } from './keys.ts'
import { asBuffer, type Entry, type Key } from './store.ts'

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
