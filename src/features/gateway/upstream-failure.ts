/** The error that a client gets when a message cannot be sent to the upstream, or its response cannot be used. */

import { PlatformError } from '../../errors.ts'
import { UpstreamError } from '../../upstream/upstream.ts'
import type { Message } from './message.ts'
import type { UpstreamCall } from './upstream-call.ts'

/**
 * The error that the client receives when sending has failed. An upstream that cannot be reached is also the
 * connection's state. Requests that waited for the same session share one thrown error, so each gets a copy with its own id.
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
  if (kind === 'busy') return tooMany(`The upstream’s response was not read: ${what}`, message)
  if (kind === 'late') return new PlatformError('upstream_timeout', `The upstream: ${what}`, { id })
  onStatus({ state: 'error', message: `The server could not be reached: ${what}` })
  return new PlatformError('upstream_error', `The upstream cannot be reached: ${what}`, { id })
}

/** `upstream_error`: the upstream responded, and the response cannot be used. `what` completes "The upstream …". */
export function unusableUpstream(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('upstream_error', `The upstream ${what}`, { id })
}

/** `rate_limited`: the caller has used up its share of something. */
export function tooMany(what: string, { id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('rate_limited', `${what}: try again`, { id })
}

/** `session_not_found`: tells an MCP client to send `initialize` again. */
export function sessionExpired({ id }: Pick<Message, 'id'>): PlatformError {
  return new PlatformError('session_not_found', 'The session has ended: initialize again', { id })
}
