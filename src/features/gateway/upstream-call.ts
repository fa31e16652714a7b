/** One message to the upstream of a connection, with all that is known of who sends it. */

import type { ConnectionRef } from '../../auth/authorize.ts'
import { PlatformError } from '../../errors.ts'
import type { Holder } from '../../http/shares.ts'
import type { Connection } from '../../model/connection.ts'
import type { Message } from './message.ts'
import type { Rewrite } from './stream.ts'

export interface UpstreamCall {
  readonly ref: ConnectionRef
  readonly connection: Connection
  /** The connection's own headers, in the clear. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** Whom a session belongs to: the token or key, and the connection as it is pointed. */
  readonly sessionKey: string
  /** Whose share of slots and memory it takes. */
  readonly holder: Holder
  readonly message: Message
  /** The client's headers. */
  readonly headers: Headers
  /** The intermediaries that the request came through (RFC 9110, 7.6.3). */
  readonly via: string | undefined
  /** Aborts when the client disconnects; undefined for what is asked for nobody in particular. */
  readonly signal: (() => AbortSignal) | undefined
  /** Looks at each message of the response, where something must be left out. */
  readonly rewrite: Rewrite | undefined
  /** Ends an open stream by calling `end` when its credential or connection has ended; returns what stops watching. */
  readonly watch: (end: (why: PlatformError) => void) => () => void
  /** Called when nothing more is waited for but that the client reads on. */
  readonly onResponse: () => void
}

export function unusableUpstream(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('upstream_error', `The upstream ${what}`, { id })
}

export function tooMany(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('rate_limited', `${what}: try again`, { id })
}

export function sessionExpired({ id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('session_not_found', 'The session has ended: initialize again', { id })
}
