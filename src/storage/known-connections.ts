/**
 * Connections by id, as they are now: kept decoded as long as nothing in their namespace changes. Calls ask for the
 * same few over and over, and two reads and a parse cost more than the rest of the way.
 */

import { LRUCache } from 'lru-cache'
import { connectionsKeptBytesMax } from '../limits.ts'
import { findConnection, type StoredConnection } from './connections.ts'
import { createGenerations } from './generation.ts'
import { pageGenerationKey } from './keys.ts'
import type { Store } from './store.ts'

export interface KnownConnections {
  /** Shared by everyone who asks: not to be changed. */
  find(namespace: string, connectionId: string): Promise<StoredConnection | undefined>
}

export function createKnownConnections(store: Pick<Store, 'get' | 'getMany' | 'stamp'>): KnownConnections {
  const generations = createGenerations(store, pageGenerationKey)
  const known = new LRUCache<string, { readonly generation: string; readonly stored: StoredConnection }>({
    maxSize: connectionsKeptBytesMax,
    sizeCalculation: ({ stored: { bytes, besideBytes } }) => 4 * (bytes.length + (besideBytes?.length ?? 0)) + 500,
  })

  return {
    async find(namespace, connectionId) {
      // Before the record: what is kept may be newer than its generation says, never older.
      const generation = await generations.current(namespace)
      const name = `${namespace}/${connectionId}`
      const kept = known.get(name)
      if (kept?.generation === generation) return kept.stored
      const found = await findConnection(store, namespace, connectionId)
      // Absence is not kept: made-up ids would push out what is real.
      if (found === undefined || generation === '') return found
      // A copy of its own: the record is a part of many in memory.
      const stored = { ...found, bytes: Buffer.from(found.bytes) }
      known.set(name, { generation, stored })
      return stored
    },
  }
}
