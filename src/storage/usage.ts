/**
 * The connections, servers and bytes that namespaces hold, counted in the commit of each write (`Count` in store.ts),
 * and counted again from all entries when `postern store verify` checks what is stored.
 */

import type { Connection } from '../model/connection.ts'
import { namespaceOf } from '../model/names.ts'
import { textOf } from './bytes.ts'
import { countBytes } from './counts.ts'
import { idOfKey, keyOf, namespaceIn, prefixOf } from './keys.ts'
import { termBytes } from './record-kinds.ts'
import type { Count, Entry, Key } from './store.ts'

/** The numbers that a namespace holds, or may hold at most. */
export interface Usage {
  readonly connections: number
  /** Of connections, with their index, private parts and kept lists, and of the details and listings of servers. */
  readonly bytes: number
  readonly servers: number
}

/** The bytes that a connection's index entries take: one for each fact, with its key. */
export function indexBytesOf(
  namespace: string,
  { connectionId, mcpUrl, metadata }: Pick<Connection, 'connectionId' | 'mcpUrl' | 'metadata'>,
): number {
  const facts = 1 + (mcpUrl === null ? 0 : 1) + Object.keys(metadata ?? {}).length
  return facts * (namespace.length + connectionId.length + termBytes + entryBytes)
}

/** The bytes that the store adds to an entry: kind, separator, and its place in a segment. */
const entryBytes = 10

/** Changes a namespace's usage, up or down. With a quota, an increase beyond it is refused. */
export function usageCount(
  namespace: string,
  { connections = 0, bytes = 0, servers = 0 }: Partial<Usage>,
  quota?: Usage,
): Count {
  return {
    key: keyOf('usage', namespace),
    add: [connections, bytes, servers],
    ...(quota !== undefined && { most: [quota.connections, quota.bytes, quota.servers] }),
  }
}

// Made once: each record is compared with them.
const [connection] = prefixOf('connection')
/** Records beside a connection, which count as it does. */
const beside = [prefixOf('connectionPrivate'), prefixOf('keptList'), prefixOf('pins')].map(([letter]) => letter)
const servers = prefixOf('server')
/** Of one group. Those of others are as long. */
const listings = prefixOf('listing', '00')

/** Changes of usages, by namespace. */
export type Usages = ReturnType<typeof createUsages>

export function createUsages() {
  const usages = new Map<string, { -readonly [K in keyof Usage]: Usage[K] }>()
  function change(namespace: string, { connections = 0, bytes = 0, servers = 0 }: Partial<Usage>): void {
    const usage = usages.getOrInsertComputed(namespace, () => ({ connections: 0, bytes: 0, servers: 0 }))
    usage.connections += connections
    usage.bytes += bytes
    usage.servers += servers
  }
  /** `times`: 1, or -1 for a record that goes. */
  function count({ key, value }: Entry, times: 1 | -1): void {
    const bytes = value.length * times
    if (key[0] === connection) {
      const namespace = namespaceIn(key)
      const index = indexBytesOf(namespace, JSON.parse(textOf(value)) as Connection)
      change(namespace, { connections: times, bytes: bytes + index * times })
    } else if (beside.includes(key[0])) change(namespaceIn(key), { bytes })
    else if (key[0] === servers[0]) change(namespaceOf(idOfKey(servers, key)), { servers: times, bytes })
    else if (key[0] === listings[0]) change(namespaceOf(idOfKey(listings, key)), { bytes })
  }
  return {
    /** Adds a record. Entries that count for no namespace are ignored. */
    add: (entry: Entry): void => count(entry, 1),
    /** Takes away what is stored for a record that is replaced or deleted; undefined: nothing. */
    remove(key: Key, value: Uint8Array | undefined): void {
      if (value !== undefined) count({ key, value }, -1)
    },
    change,
    /** The changes as counts, against a quota if there is one. */
    counts: (quota?: Usage): Count[] => [...usages].map(([namespace, usage]) => usageCount(namespace, usage, quota)),
    /** The usages as they are stored, of an empty store with these changes. */
    entries(): Entry[] {
      return this.counts().map(({ key, add }) => ({ key, value: countBytes(add) }))
    },
  }
}
