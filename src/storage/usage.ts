/**
 * What namespaces hold, counted anew from their entries: for a store that was never counted, and for a check of one
 * that was.
 */

import { connections, namespaceIn, privates, usageKey } from './keys.ts'
import { countBytes, type Entry } from './store.ts'

export interface Usages {
  /** Entries of other kinds count for nothing. */
  add(entry: Entry): void
  /** What is to be stored, by namespace. */
  entries(): Entry[]
}

export function createUsageCounter(): Usages {
  const usages = new Map<string, { connections: number; bytes: number }>()
  return {
    add({ key, value }) {
      const isConnection = key[0] === connections[0]
      if (!isConnection && key[0] !== privates[0]) return
      const namespace = namespaceIn(key)
      const usage = usages.get(namespace) ?? { connections: 0, bytes: 0 }
      usages.set(namespace, usage)
      usage.bytes += value.length
      if (isConnection) usage.connections += 1
    },
    entries: () =>
      [...usages].map(([namespace, { connections, bytes }]) => ({
        key: usageKey(namespace),
        value: countBytes([connections, bytes]),
      })),
  }
}
