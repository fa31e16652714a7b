/** One message to a connection's upstream, with its caller's context, and the errors that it may end with. */

import type { AuthorizedConnection } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import type { Allowance } from '../../fairness/allowance.ts'
import type { Holder } from '../../fairness/owner.ts'
import type { Shares } from '../../fairness/shares.ts'
import type { ConnectionStatus } from '../../model/connection.ts'
import { UpstreamError } from '../../upstream/upstream.ts'
import type { Credentials } from '../upstream-sign-in/token-refresh.ts'
import type { Message } from './message.ts'
import type { Rewrite } from './relayed-stream.ts'
import type { ClientGreeting } from './sessions.ts'

/** How far a call has come, for its record. */
export interface CallProgress {
  /** Whether it was sent to the server, which may have executed it then. */
  isSent: boolean
  /** Whether the server has answered, whether or not the caller may still have the answer. */
  isAnswered: boolean
  /** The body of the answer, where it is in memory as a whole. */
  body?: Uint8Array | string
  /** The server's id of the session in which the message was sent; undefined without one. */
  sessionId?: string | undefined
  /** Why the platform has ended the stream of the answer: the right to it ended first. */
  endedBy?: PlatformError
}

export interface UpstreamCall {
  /** Of the client's request. */
  readonly allowance: Pick<Allowance, 'hold' | 'parse' | 'run' | 'spend' | 'takeAnswer'>
  readonly progress: CallProgress
  readonly connection: AuthorizedConnection
  /** The connection's URL, with what a person entered for its query. */
  readonly url: string
  /** The token of somebody who has signed in to the server; undefined if nobody has. */
  readonly credentials: Credentials | undefined
  /** Where a person signs in to the server; undefined if the connection sends an authorization header of its own. */
  readonly signInUrl: () => string | undefined
  /** Whether the caller is a client that signed in here, with a token for this connection alone. */
  readonly isOfSignedInClient: boolean
  /** The headers stored with the connection, decrypted. */
  readonly connectionHeaders: Readonly<Record<string, string>>
  /** Identifies the owner of a session; see `sessionOwnerOf` in forward.ts. */
  readonly sessionOwner: string
  /** The greeting of the client at the endpoint of a namespace; undefined at that of a connection. */
  readonly greeting?: ClientGreeting | undefined
  /** The call counts against this holder's share of slots and memory. */
  readonly holder: Holder
  /** Accounts for the bytes of responses that clients have not read yet. */
  readonly memory: Shares
  readonly message: Message
  /** The client's headers. */
  readonly headers: Headers
  /** The client's `Via` header: the intermediaries that forwarded the request (RFC 9110, 7.6.3). */
  readonly via: string | undefined
  /** Aborts when the client disconnects. Undefined for requests that several clients wait for. */
  readonly signal: (() => AbortSignal) | undefined
  /** Rewrites each message of the response. Undefined if the response is passed on unchanged. */
  readonly rewrite: Rewrite | undefined
  /** Calls `end` once the right to an open stream has ended. Returns a function that stops watching. */
  readonly watchAccess: (end: (why: PlatformError) => void) => () => void
  /**
   * Awaited before each send: authorizes again if time has passed since, as opening a session and refreshing a token
   * take. Throws what authorizing the message throws, and `upstream_error` if the connection is another one by then.
   */
  readonly requireAccess: () => Promise<void> | undefined
  /** Called with the connection's state whenever a response or failure shows it. */
  readonly onStatus: (status: ConnectionStatus) => void
  /** Called once nothing is pending except the client reading the response. */
  readonly restoreIdleTimeout: () => void
}

/**
 * The error that the client receives when sending has failed. An upstream that cannot be reached is also the
 * connection's state. Requests that waited for the same session share one thrown error, so each gets a copy with its
 * own id.
 */
export function upstreamFailure(
  thrown: unknown,
  { message, onStatus }: Pick<UpstreamCall, 'message' | 'onStatus'>,
): unknown {
  if (thrown instanceof PlatformError) return thrown.with({ id: message.id })
  if (!(thrown instanceof UpstreamError)) return thrown
  const { kind, message: what } = thrown
  const { id } = message
  // Caused by the client, so the connection's state stays as it is.
  if (kind === 'gone') return new PlatformError('upstream_error', 'The client disconnected', { id })
  if (kind === 'busy') return tooMany(`No response of the MCP server was read: ${what}`, message)
  if (kind === 'late') {
    const limit = what.startsWith('no response') ? ' (the limit is --upstream-timeout)' : ''
    return new PlatformError('upstream_timeout', `The MCP server is too slow: ${what}${limit}`, { id })
  }
  onStatus({ state: 'error', message: `The server could not be reached: ${what}` })
  return new PlatformError('upstream_error', `The MCP server cannot be used: ${what}`, { id })
}

/** The end of a message about a connection that a person must set up first: clients show the message alone. */
export const howToOpen = (setupUrl: string | undefined) => (setupUrl === undefined ? '' : `: open ${setupUrl}`)

/** `upstream_error`: the upstream responded, and the response cannot be used. `what` completes "The MCP server …". */
export function unusableUpstream(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('upstream_error', `The MCP server ${what}`, { id })
}

/** `rate_limited`: the caller has used up its share of something. */
export function tooMany(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('rate_limited', `${what}; try again`, { id })
}

/** `session_not_found`: tells an MCP client to send `initialize` again. */
export function sessionExpired({ id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('session_not_found', 'The session has ended: initialize again', { id })
}
