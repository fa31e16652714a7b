/** The client that somebody registered by hand and gave to a connection, sealed with it. */

import type { ConnectionRef } from '../../auth/authorize.ts'
import { openSealed, seal } from '../../auth/secrets.ts'
import type { GivenClient } from '../../model/connection.ts'
import type { ConnectionPrivate } from '../../storage/connections.ts'

const placeOf = ({ namespace, connectionId }: ConnectionRef) => `${namespace}/${connectionId} oauth`

export function sealGivenClient(given: GivenClient, ref: ConnectionRef, key: Buffer): string {
  return seal(key, JSON.stringify(given), placeOf(ref)).toString('base64url')
}

/** Undefined if none was given. Throws Error for one that was sealed elsewhere. */
export function openGivenClient(
  { oauth }: Pick<ConnectionPrivate, 'oauth'>,
  ref: ConnectionRef,
  key: Buffer,
): GivenClient | undefined {
  if (oauth === undefined) return undefined
  const text = openSealed(key, Buffer.from(oauth, 'base64url'), placeOf(ref))
  if (text === undefined) throw new Error('the client of a connection was sealed with another secret')
  return JSON.parse(text) as GivenClient
}
