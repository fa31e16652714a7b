/** The dependencies of the handlers of writes of servers. */

import type { WriteAuthenticationDeps } from '../../auth/write-authentication.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'
import type { Usage } from '../../storage/usage.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Catalogue } from './catalogue.ts'

export interface ServerWriteDeps extends WriteAuthenticationDeps {
  readonly store: Store
  readonly catalogue: Pick<Catalogue, 'refresh' | 'ownedWith'>
  readonly audit: Audit
  readonly upstream: Upstream
  /** The most that a namespace may hold. */
  readonly quota: Usage
  /** Milliseconds since 1970. */
  readonly now: () => number
}
