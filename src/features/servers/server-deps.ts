/** The dependencies of the handlers of servers. */

import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import type { Denials } from '../../auth/denials.ts'
import type { Writes } from '../../auth/writes.ts'
import type { Clock } from '../../clock.ts'
import type { Audit } from '../../ops/audit-log.ts'
import type { Store } from '../../storage/store.ts'
import type { Usage } from '../../storage/usage.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Catalogue, Listed } from './catalogue.ts'

/** Of each name the server whose qualifiedName it is, then the others in the catalogue's order. */
export type ServersByName = ReadonlyMap<string, readonly Listed[]>

export interface ServerDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  readonly store: Store
  readonly catalogue: Catalogue
  /** Servers by their names in the registry, made once for each state of the catalogue. */
  readonly byNameOfState: WeakMap<readonly Listed[], ServersByName>
  readonly audit: Audit
  readonly writes: Writes
  readonly upstream: Upstream
  /** The most that a namespace may hold. */
  readonly quota: Usage
  readonly clock: Clock
  /** The base URL, without a slash at its end. */
  readonly base: string
  /** Whether readers of `/v0.1/servers` without a credential see what is listed for all (`--open-registry`). */
  readonly isRegistryOpen: boolean
  /** Called with the body of each list and of each server's details, so that the fast lane can reuse it. */
  readonly onAnswer: (context: RequestContext, json: Uint8Array) => void
}
