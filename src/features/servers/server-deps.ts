/** The dependencies of the handlers of writes of servers. */

import type { Authorizer } from '../../auth/authorizer.ts'
import type { Writes } from '../../auth/writes.ts'
import type { Clock } from '../../clock.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { ServerRecords } from './server-records.ts'

export interface ServerWriteDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly audit: Audit
  readonly writes: Writes
  readonly servers: ServerRecords
  readonly upstream: Upstream
  readonly clock: Clock
}
