/** The dependencies of the authorization server, and the clients that it keeps. */

import type { LRUCache } from 'lru-cache'
import type { Caller } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import type { StoredClient } from '../../auth/grants.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import type { RateLimit } from '../../fairness/rate-limit.ts'
import type { ShownTool } from '../../model/mcp.ts'
import type { ServiceTokenClaims } from '../../model/token.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { AskedResource } from './asked-resource.ts'
import type { AuthorizationSettings } from './oauth-metadata.ts'

/** `name`: the one that the client gives itself, which nobody verified. */
export interface Client extends StoredClient {
  readonly clientId: string
  /** The host of its document, which vouches for it; left out for a registered client, for which nobody does. */
  readonly host?: string
}

/** Clients by the URL of their document. `until`: milliseconds since 1970. */
export type KeptDocuments = LRUCache<string, { readonly client: Client; readonly until: number }>

export interface OAuthDeps extends SharedParts {
  readonly upstream: Upstream
  readonly settings: AuthorizationSettings
  readonly keptDocuments: KeptDocuments
  readonly sign: (claims: ServiceTokenClaims, caller: Caller) => Promise<string>
  /** The tools of a resource; undefined if they are not listed in time. */
  readonly listTools: (context: RequestContext, resource: AskedResource) => Promise<ShownTool[] | undefined>
  /** Limits registrations per address. */
  readonly registrations: RateLimit
  /** Limits the fetches of documents, by owner: each is a request to somebody's server. */
  readonly documents: RateLimit
  /** Limits the codes, and so the grants, of each user. */
  readonly newGrants: RateLimit
}
