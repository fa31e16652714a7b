/** Publishes what is committed and audited in this process. */

import { type Clock, timestampOf } from '../../clock.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { parseKey } from '../../storage/record-kinds.ts'
import type { Store, Write } from '../../storage/store.ts'
import type { EventLog } from './event-log.ts'

/** The same store; each connection that it writes or deletes is published. */
export function publishingStore(store: Store, events: EventLog): Store {
  return {
    ...store,
    async commit(write) {
      const refs = connectionsIn(write)
      const committed = await store.commit(write)
      if (committed.ok) for (const ref of refs) events.publish({ type: 'connection', ref })
      return committed
    },
  }
}

/** Each write of a connection checks that it is as it was read. */
function connectionsIn({ checks = [] }: Write): ConnectionRef[] {
  return checks.flatMap(({ key }) => {
    const parsed = parseKey(key)
    if (parsed?.kind !== 'connection') return []
    return [{ namespace: parsed.namespace, connectionId: parsed.connectionId }]
  })
}

/** The same audit log; each entry is published when it is in the file. */
export function publishingAudit(audit: Audit, events: EventLog, clock: Clock): Audit {
  const publish = (event: string, fields: object) => {
    events.publish({ type: 'audit', entry: { time: timestampOf(clock), event, ...fields } })
  }
  return {
    ...audit,
    async record(event, fields) {
      await audit.record(event, fields)
      publish(event, fields)
    },
    async recordDone(event, fields) {
      await audit.recordDone(event, fields)
      publish(event, fields)
    },
    recordBestEffort(event, caller, fields) {
      audit.recordBestEffort(event, caller, fields)
      publish(event, { userId: caller.userId, keyId: caller.keyId, ...fields })
    },
  }
}
