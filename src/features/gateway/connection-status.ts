/** The state of a connection, as its traffic tells it: written when it changes, now and then, and never waited for. */

import { LRUCache } from 'lru-cache'
import type { ConnectionRef } from '../../auth/authorize.ts'
import { statusesKeptMax, statusWriteIntervalMs } from '../../limits.ts'
import type { ConnectionStatus } from '../../model/connection.ts'
import type { Log } from '../../ops/log.ts'
import { connectionChange, findConnection } from '../../storage/connections.ts'
import type { Store } from '../../storage/store.ts'

export interface StatusRecorder {
  record(ref: ConnectionRef, status: ConnectionStatus): void
}

export interface StatusRecorderOptions {
  readonly store: Store
  /** Milliseconds that never go back. */
  readonly now: () => number
  readonly log: Log
}

export function createStatusRecorder({ store, now, log }: StatusRecorderOptions): StatusRecorder {
  const written = new LRUCache<string, number>({ max: statusesKeptMax })
  return {
    record({ namespace, connectionId }, status) {
      const name = `${namespace}/${connectionId}`
      const last = written.get(name)
      if (last !== undefined && now() - last < statusWriteIntervalMs) return
      written.set(name, now())
      writeStatus(store, namespace, connectionId, status).catch((error: unknown) =>
        log.warn('the status of a connection could not be written', { error: String(error) }),
      )
    },
  }
}

/** Where somebody else writes the connection meanwhile, theirs stays. */
async function writeStatus(
  store: Store,
  namespace: string,
  connectionId: string,
  status: ConnectionStatus,
): Promise<void> {
  const before = await findConnection(store, namespace, connectionId)
  if (before === undefined || JSON.stringify(before.connection.status) === JSON.stringify(status)) return
  const connection = { ...before.connection, status }
  await store.commit(connectionChange(namespace, connectionId, before, { connection, privatePart: before.privatePart }))
}
