/**
 * Requests to authorization servers: over our own upstream client, so that they reach only allowed addresses, follow no
 * redirect, and are bounded (contract, 14.9).
 */

import { allowInsecureRequests, customFetch } from 'oauth4webapi'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { PlatformError } from '../../errors.ts'
import { type Holder, ticketHolder } from '../../fairness/owner.ts'
import { isSecureUrl } from '../../http/guard.ts'
import { oauthFetchTimeoutMs } from '../../limits.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { ownerName } from '../../model/organization.ts'
import { shorten } from '../../schema/cut-text.ts'
import { isUrl } from '../../schema/url-host.ts'
import { toResponse, type Upstream, UpstreamError } from '../../upstream/upstream.ts'

/** Contract 14.9: bytes of metadata, a registration or a token response. Past it: 502. */
export const oauthResponseBytesMax = 64 * 1024

/** The shape in which OAuth libraries take a fetch. */
export type OAuthFetch = (
  url: string,
  init?: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: unknown },
) => Promise<Response>

/** The options of a request of the library `oauth4webapi`, over this fetch. */
export function requestOver(fetch: OAuthFetch, additionalParameters: Record<string, string> = {}) {
  // The URLs were checked: http is allowed on this machine alone.
  return { [customFetch]: fetch as never, [allowInsecureRequests]: true, additionalParameters }
}

/** Something that the other side does wrong: 502, with the step at which it happened. */
export class SignInProblem extends PlatformError {
  constructor(step: string, what: string, options?: ErrorOptions) {
    super('upstream_error', `${step}: ${what}`, options)
  }
}

/** The holder that work on a connection's sign-in counts against: the person of a session, or else the connection. */
export async function holderOf(
  { directory }: Pick<SharedParts, 'directory'>,
  ref: ConnectionRef,
  { userId, keyId }: { readonly userId?: string; readonly keyId?: string } = {},
): Promise<Holder> {
  if (keyId !== undefined) return { keyId, family: keyId, ...(userId !== undefined && { userId }) }
  const namespace = await (await directory.current()).namespace(ref.namespace)
  return ticketHolder(namespace === undefined ? ref.namespace : ownerName(namespace), ref)
}

/** Rejects with SignInProblem if the request fails; `step` begins its text. */
export function createOAuthFetch(upstream: Upstream, step: string, holder: Holder): OAuthFetch {
  return async (url, { method = 'GET', headers = {}, body } = {}) => {
    requireSecure(url, step)
    try {
      const response = await upstream.send({
        url,
        method: method as 'GET',
        headers,
        timeoutMs: oauthFetchTimeoutMs,
        bodyBytesMax: oauthResponseBytesMax,
        ...(body !== undefined && body !== null && { body: String(body) }),
        holder,
      })
      return toResponse(response)
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      throw new SignInProblem(step, `${new URL(url).host} cannot be reached: ${error.message}`, { cause: error })
    }
  }
}

/** Throws SignInProblem for a URL that is neither https nor http on this machine. */
export function requireSecure(url: string, step: string): void {
  if (isUrl(url)) {
    const { username, password } = new URL(url)
    if (isSecureUrl(url) && username + password === '') return
  }
  throw new SignInProblem(step, `${shorten(url)} must be an https URL, without a user and a password`)
}
