/** The dependencies of the handlers of organizations and namespaces. */

import type { Authorizer } from '../../auth/authorizer.ts'
import type { Writes } from '../../auth/writes.ts'
import type { Clock } from '../../clock.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'

/** Which namespaces have servers. */
interface RegisteredServers {
  /** Resolves when what was committed before the call is known. */
  refresh(): Promise<void>
  hasServers(namespace: string): boolean
}

export interface OrganizationDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly audit: Audit
  readonly writes: Writes
  readonly catalogue: RegisteredServers
  /** The key that API keys are hashed with. */
  readonly pepper: Buffer
  /** Namespaces that a user owns and may not make another; Infinity for no limit. */
  readonly namespacesPerUser: number
  readonly baseUrl: string
  readonly clock: Clock
}
