/** A sign-in to a server that nothing can renew, and what its connection's status says of it. */

import type { ConnectionStatus } from '../model/connection.ts'
import type { ConnectionPrivate } from '../storage/connections.ts'

/** The status of a connection, with the end of its sign-in if that is known. */
export function withSignInEnd(
  status: ConnectionStatus,
  { signedInUntil }: Pick<ConnectionPrivate, 'signedInUntil'>,
): ConnectionStatus {
  return status.state === 'connected' && signedInUntil !== undefined ? { state: 'connected', signedInUntil } : status
}
