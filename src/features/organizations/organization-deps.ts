/** The dependencies of the handlers of organizations and namespaces. */

import type { SharedParts } from '../../auth/shared-parts.ts'
import type { RateLimit } from '../../fairness/rate-limit.ts'
import type { Deletions } from './deletions.ts'

export interface OrganizationDeps extends SharedParts {
  readonly deletions: Deletions
  /** Which namespaces have servers. `refresh` resolves when what was committed before the call is known. */
  readonly catalogue: { refresh(): Promise<void>; hasServers(namespace: string): boolean }
  /** Namespaces that a user owns and may not make another; Infinity for no limit. */
  readonly namespacesPerUser: number
  /** Limits the API keys that are made, by organization. */
  readonly newKeys: RateLimit
  /** Limits the namespaces that are made, by owner. */
  readonly newNamespaces: RateLimit
}
