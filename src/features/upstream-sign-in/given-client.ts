/** The client that somebody registered by hand and gave to a connection, sealed with it. */

import { openJson, sealJson } from '../../auth/secrets.ts'
import type { ConnectionRef, GivenClient } from '../../model/connection.ts'
import type { ConnectionPrivate } from '../../storage/connections.ts'

/** As it is kept. */
export interface StoredClient extends GivenClient {
  /** A person typed it on the setup page, and may correct it there. */
  readonly isTyped?: boolean
  /** Its issuer is the one that was met first, not one that was given with it. */
  readonly isIssuerMet?: boolean
}

const placeOf = ({ namespace, connectionId }: ConnectionRef) => `${namespace}/${connectionId} oauth`

export function sealGivenClient(given: StoredClient, ref: ConnectionRef, key: Buffer): string {
  return sealJson(key, given, placeOf(ref))
}

/** Undefined if none was given. Throws Error for one that was sealed elsewhere. */
export function openGivenClient(
  { oauth }: Pick<ConnectionPrivate, 'oauth'>,
  ref: ConnectionRef,
  key: Buffer,
): StoredClient | undefined {
  return openJson(key, oauth, placeOf(ref), 'client credentials')
}
