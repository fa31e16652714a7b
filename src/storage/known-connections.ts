/**
 * Connections by id, as they are now: kept decoded as long as nothing in their namespace changes. Calls ask for the
 * same few over and over, and two reads and a parse cost more than the rest of the way.
 */

import { LRUCache } from 'lru-cache'
import { connectionsKeptBytesMax } from '../limits.ts'
import type { Soon } from '../model/soon.ts'
import { findConnection, type StoredConnection } from './connections.ts'
import { createGenerations } from './generation.ts'
import { pageGenerationKey } from './keys.ts'
import type { Store } from './store.ts'

export interface KnownConnection {
  /** Of the namespace: as long as it is the same, so is the connection. */
  readonly generation: string
  /** Shared by everyone who asks: not to be changed. */
  readonly stored: StoredConnection
}

export interface KnownConnections {
  /** A promise only where it must be read. */
  find(namespace: string, connectionId: string): Soon<KnownConnection | undefined>
}

export function createKnownConnections(store: Pick<Store, 'get' | 'getMany' | 'stamp'>): KnownConnections {
  const generations = createGenerations(store, pageGenerationKey)
  const known = new LRUCache<string, KnownConnection>({
    maxSize: connectionsKeptBytesMax,
    sizeCalculation: ({ stored: { bytes, besideBytes } }) => 4 * (bytes.length + (besideBytes?.length ?? 0)) + 500,
  })

  async function read(namespace: string, connectionId: string): Promise<KnownConnection | undefined> {
    // Before the record: what is kept may be newer than its generation says, never older.
    const generation = await generations.current(namespace)
    const found = await findConnection(store, namespace, connectionId)
    // Absence is not kept: made-up ids would push out what is real.
    if (found === undefined) return undefined
    // A copy of its own: the record is a part of many in memory.
    const kept = { generation, stored: { ...found, bytes: Buffer.from(found.bytes) } }
    if (generation !== '') known.set(`${namespace}/${connectionId}`, kept)
    return kept
  }

  return {
    find(namespace, connectionId) {
      const generation = generations.current(namespace)
      const kept = known.get(`${namespace}/${connectionId}`)
      return kept !== undefined && kept.generation === generation ? kept : read(namespace, connectionId)
    },
  }
}
