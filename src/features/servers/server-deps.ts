/** The dependencies of the handlers of servers. */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import type { Usage } from '../../storage/usage.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Catalogue } from './catalogue.ts'

export interface ServerDeps extends SharedParts {
  readonly catalogue: Catalogue
  readonly upstream: Upstream
  /** The most that a namespace may hold. */
  readonly quota: Usage
  /** Whether readers of `/v0.1/servers` without a credential see what is listed for all (`--open-registry`). */
  readonly isRegistryOpen: boolean
  /** Called with the body of each list and of each server's details, so that the fast lane can reuse it. */
  readonly onAnswer: (context: RequestContext, json: Uint8Array) => void
}
