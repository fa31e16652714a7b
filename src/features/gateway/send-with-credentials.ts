/** Sends a body to a connection's server, with its headers and the token of somebody who has signed in. */

import type { Upstream, UpstreamResponse } from '../../upstream/upstream.ts'
import { readChallenge } from '../upstream-sign-in/challenge.ts'
import { forwardedHeaders } from './forwarded-headers.ts'
import type { UpstreamCall } from './upstream-call.ts'

/** Sends a body to the call's connection, with `more` as additional headers. Rejects with UpstreamError. */
export type Post = (
  call: UpstreamCall,
  body: Uint8Array | string,
  more: Readonly<Record<string, string>>,
) => Promise<UpstreamResponse>

/**
 * A 401 did nothing, so with a renewed token the message is sent once more: the one exception to "never twice". After
 * another 401 the token is dropped. Scopes that the server wants besides those of its token are noted. `timeoutMs`:
 * until the response head must have arrived.
 */
export function createPost(upstream: Upstream, timeoutMs: number): Post {
  return async (call, body, more) => {
    const { url, holder, signal, via, progress, requireAccess } = call
    let { credentials } = call
    for (let isSecond = false; ; isSecond = true) {
      const checked = requireAccess()
      if (checked !== undefined) await checked
      const headers = forwardedHeaders(call, more)
      if (credentials !== undefined) headers['authorization'] = `Bearer ${credentials.accessToken}`
      const request = { url, headers, body, timeoutMs, holder, via, signal, requireAccess, progress }
      const response = await upstream.send(request)
      if (response.status === 403) {
        const wanted = await wantedScope(response)
        if (wanted !== undefined) await credentials?.wants(wanted)
      }
      if (response.status !== 401) return response
      if (isSecond) {
        await credentials?.refused()
        return response
      }
      const renewed = await credentials?.renew()
      if (renewed === undefined) return response
      credentials = renewed
    }
  }
}

/** The scopes that a 403 asks for (MCP, step-up authorization); undefined for any other response. */
export async function wantedScope({ status, headers }: UpstreamResponse): Promise<string | undefined> {
  const { 'www-authenticate': challenge } = headers
  if (status !== 403 || challenge === undefined) return undefined
  const { error, scope = '' } = await readChallenge(challenge)
  return error === 'insufficient_scope' ? scope : undefined
}
