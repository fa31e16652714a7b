/**
 * Namespaces that were deleted over HTTP. Their record goes first, so that nobody can access them; their connections
 * follow, a few at a time. A mark stays until the last is gone, and a process that starts continues what another left.
 */

import { type Clock, systemClock } from '../clock.ts'
import type { ConnectionRef } from '../model/connection.ts'
import { equalBytes } from './bytes.ts'
import { decoded, deletionOf, findRecords, type StoredConnection } from './connections.ts'
import { namespaceEnd } from './ended-namespaces.ts'
import { everyKey } from './every-entry.ts'
import { idOfKey, keyOf, prefixOf, prefixRange } from './keys.ts'
import type { Store } from './store.ts'
import { checkOf } from './versions.ts'

/** Connections that are read for one write. Past it: the next write has them. */
const readAtOnceMax = 25
/** Bytes of connections that are parsed for one write, beyond the first connection. Past it: as for `readAtOnceMax`. */
const parsedBytesMax = 128 * 1024

/** Removals share the event loop: each writes when it has a place, one write at a time. */
export interface Removal {
  readonly clock: Pick<Clock, 'now'>
  /** Waits for a place. Resolves with a function that leaves it. */
  readonly enter: () => Promise<() => void>
  /** Called for each connection that was removed: its sign-in at its server is over too. */
  readonly onRemoved: (ref: ConnectionRef, removed: StoredConnection) => Promise<void>
}

/** Before the server answers: nobody else needs the event loop, and no other server can be asked. */
export const beforeServing: Removal = { clock: systemClock, enter: async () => () => {}, onRemoved: async () => {} }

/**
 * Removes all connections of a namespace that is marked as deleted, then the mark. Another process may do the same, and
 * then the name may be used again. So records are read before the mark: if the mark is still there, they belong to the
 * deleted namespace. Each delete requires that its record is unchanged.
 */
export async function removeDeleted(
  store: Store,
  namespace: string,
  { clock, enter, onRemoved }: Removal,
): Promise<void> {
  const markKey = keyOf('deletingNamespace', namespace)
  const mark = await store.get(markKey)
  if (mark === undefined) return
  const isStillMarked = async () => equalBytes(await store.get(markKey), mark)
  // From here on no connection is made that was authorized before.
  await store.commit({ puts: [namespaceEnd(namespace, new Date(clock.now()))], fromReserve: 'deletion' })
  const versionKey = keyOf('connectionsVersion', namespace)
  for (let isEmpty = false; !isEmpty; ) {
    const leave = await enter()
    try {
      const check = await checkOf(store, versionKey)
      const found = await firstConnections(store, namespace)
      if (!(await isStillMarked())) return
      isEmpty = found.length === 0
      if (isEmpty) await store.commit({ checks: [check], deletes: [versionKey], fromReserve: 'deletion' })
      else {
        const { write, deleted } = deletionOf(namespace, found)
        if (!(await store.commit(write)).ok) continue
        for (const one of deleted) await onRemoved({ namespace, connectionId: one.connection.connectionId }, one)
      }
    } finally {
      leave()
    }
  }
  await store.commit({ checks: [{ key: markKey, value: mark }], deletes: [markKey], fromReserve: 'deletion' })
}

/** As many as one write deletes, and a moment parses. */
async function firstConnections(store: Store, namespace: string): Promise<StoredConnection[]> {
  const prefix = prefixOf('connection', namespace)
  const { keys } = await store.keys({ ...prefixRange(prefix), limit: readAtOnceMax })
  const refs = keys.map((key) => ({ namespace, connectionId: idOfKey(prefix, key) }))
  const found: StoredConnection[] = []
  let bytes = 0
  for (const record of await findRecords(store, refs)) {
    bytes += (record?.bytes.length ?? 0) + (record?.privateBytes?.length ?? 0)
    if (found.length > 0 && bytes > parsedBytesMax) break
    const one = decoded(record)
    if (one !== undefined) found.push(one)
  }
  return found
}

/** Continues deletions that were interrupted: at start, and every hour. */
export async function removeAllDeleted(store: Store, removal: Removal): Promise<void> {
  const marks = prefixOf('deletingNamespace')
  for await (const key of everyKey(store, marks)) await removeDeleted(store, idOfKey(marks, key), removal)
}
