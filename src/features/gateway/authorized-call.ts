/** A request that may use a connection, on its way to the connection's server. */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import type { View } from '../../model/view.ts'
import type { Rewrite } from './relayed-stream.ts'
import type { ClientGreeting } from './sessions.ts'
import type { CallProgress } from './upstream-call.ts'

/** A request that may use the connection. Whether the policy allows its message is decided later, in `forward`. */
export interface AuthorizedCall {
  readonly context: RequestContext
  readonly connection: AuthorizedConnection
  /** Authorizes it again. Throws what authorizing it threw, or would have thrown. */
  readonly renew: () => Promise<AuthorizedCall>
  /** Set if the request came to the endpoint of a namespace. */
  readonly endpoint?: EndpointCall
}

/** A request to the endpoint of a namespace, which sends it to one of the namespace's connections. */
export interface EndpointCall {
  /** As the record of calls has them. */
  readonly via: 'namespace' | 'search'
  readonly view?: View | undefined
  /** The session of the client with that endpoint: its sessions with servers belong to it. */
  readonly client: ClientGreeting
  /** The id under which the server has the message, as JSON; left out for a message that has none. */
  readonly rawId?: string
  /** Rewrites each message of the answer for the client; left out for requests of the platform itself. */
  readonly rewrite?: (progress: CallProgress) => Rewrite
}
