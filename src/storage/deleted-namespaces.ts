/**
 * Namespaces that were deleted over HTTP. Their record goes first, so that nobody can access them; their connections
 * follow, a few at a time. A mark stays until the last is gone, and a process that starts continues what another left.
 */

import type { ConnectionRef } from '../model/connection.ts'
import { equalBytes } from './bytes.ts'
import { deletionsOf, findConnections, type StoredConnection } from './connections.ts'
import { everyKey } from './every-entry.ts'
import { idOfKey, keyOf, prefixOf, prefixRange } from './keys.ts'
import type { Store } from './store.ts'
import { checkOf, newVersion } from './versions.ts'

/** Connections of a deleted namespace that are removed at once. Past it: in several writes. */
const deletedAtOnceMax = 100

/** Called for each connection that was removed: its sign-in at its server is over too. */
export type OnRemoved = (ref: ConnectionRef, removed: StoredConnection) => Promise<void>

/**
 * Removes all connections of a namespace that is marked as deleted, then the mark. Another process may do the same, and
 * then the name may be used again. So records are read before the mark: if the mark is still there, they belong to the
 * deleted namespace. Each delete requires that its record is unchanged.
 */
export async function removeDeleted(store: Store, namespace: string, onRemoved: OnRemoved): Promise<void> {
  const markKey = keyOf('deletingNamespace', namespace)
  const mark = await store.get(markKey)
  if (mark === undefined) return
  const isStillMarked = async () => equalBytes(await store.get(markKey), mark)
  // From here on no connection is made that was authorized before.
  await store.commit({ puts: [newVersion(keyOf('endedNamespace', namespace))], fromReserve: 'deletion' })
  const prefix = prefixOf('connection', namespace)
  const versionKey = keyOf('connectionsVersion', namespace)
  for (;;) {
    const check = await checkOf(store, versionKey)
    const { keys } = await store.keys({ ...prefixRange(prefix), limit: deletedAtOnceMax })
    const refs = keys.map((key) => ({ namespace, connectionId: idOfKey(prefix, key) }))
    const found = await findConnections(store, refs)
    if (!(await isStillMarked())) return
    if (keys.length === 0) {
      await store.commit({ checks: [check], deletes: [versionKey], fromReserve: 'deletion' })
      break
    }
    const stored = found.filter((one) => one !== undefined)
    for (const { write, gone } of deletionsOf(namespace, stored)) {
      if (!(await store.commit(write)).ok) continue
      for (const one of gone) await onRemoved({ namespace, connectionId: one.connection.connectionId }, one)
    }
  }
  await store.commit({ checks: [{ key: markKey, value: mark }], deletes: [markKey], fromReserve: 'deletion' })
}

/** Continues deletions that were interrupted: at start, and every hour. */
export async function removeAllDeleted(store: Store, onRemoved: OnRemoved): Promise<void> {
  const marks = prefixOf('deletingNamespace')
  for await (const key of everyKey(store, marks, deletedAtOnceMax))
    await removeDeleted(store, idOfKey(marks, key), onRemoved)
}
