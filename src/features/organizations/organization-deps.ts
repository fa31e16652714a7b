/** The dependencies of the handlers of organizations and namespaces. */

import type { Authorizer } from '../../auth/authorizer.ts'
import type { Writes } from '../../auth/writes.ts'
import type { Clock } from '../../clock.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'

export interface OrganizationDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly audit: Audit
  readonly writes: Writes
  /** The key that API keys are hashed with. */
  readonly pepper: Buffer
  /** Namespaces that a user owns and may not make another; Infinity for no limit. */
  readonly namespacesPerUser: number
  readonly baseUrl: string
  readonly clock: Clock
}
