/**
 * Recounts the usage of namespaces from their entries: when a store is upgraded from a layout without usages, and when
 * `postern verify` checks the stored ones.
 */

import { countBytes } from './counts.ts'
import { connections, namespaceIn, privates, usageKey } from './keys.ts'
import type { Entry } from './store.ts'

export interface Usages {
  /** Adds a connection or a private part. Entries of other kinds are ignored. */
  add(entry: Entry): void
  /** The usage entries to store, one for each namespace seen. */
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
