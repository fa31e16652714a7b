/**
 * Namespaces that were deleted over HTTP. Their record goes first, so that nobody reaches them; their connections
 * follow, a few at a time. A mark stays until the last is gone, and a process that starts continues what another left.
 */

import { deletedAtOnceMax } from '../limits.ts'
import { connectionChange, findConnection } from './connections.ts'
import { everyKey } from './every-entry.ts'
import { connectionsOf, connectionsVersionKey, deleting, deletingKey, endedKey, idOfKey, prefixRange } from './keys.ts'
import type { Store } from './store.ts'
import { newVersion } from './versions.ts'

/** Removes all connections of a namespace that is marked as being deleted, and then the mark. */
export async function removeDeleted(store: Store, namespace: string): Promise<void> {
  // From here on no connection is made that was authorized before.
  await store.commit({ puts: [newVersion(endedKey(namespace))], fromReserve: true })
  const prefix = connectionsOf(namespace)
  for (;;) {
    const { keys } = await store.keys({ ...prefixRange(prefix), limit: deletedAtOnceMax })
    if (keys.length === 0) break
    await Promise.all(
      keys.map(async (key) => {
        const connectionId = idOfKey(prefix, key)
        const found = await findConnection(store, namespace, connectionId)
        if (found !== undefined) await store.commit(connectionChange(namespace, connectionId, found, undefined))
      }),
    )
  }
  await store.commit({ deletes: [connectionsVersionKey(namespace)], fromReserve: true })
  await store.commit({ deletes: [deletingKey(namespace)], fromReserve: true })
}

/** Continues what processes before this one began. */
export async function removeAllDeleted(store: Store): Promise<void> {
  for await (const key of everyKey(store, deleting, deletedAtOnceMax)) {
    await removeDeleted(store, idOfKey(deleting, key))
  }
}
