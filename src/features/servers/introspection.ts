/** Asks the server at a URL what it has, for the caller of a request. */

import type { Caller } from '../../auth/authenticate.ts'
import { invalidRequest } from '../../errors.ts'
import { type Introspection, introspectServer } from '../../upstream/introspect.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'

/**
 * Throws `invalid_request` for an address that must not be reached; it names the `field`
 * that the URL is in.
 */
export async function introspectFor(
  upstream: Upstream,
  { headers }: Request,
  caller: Caller,
  url: string,
  field: string,
): Promise<Introspection> {
  try {
    return await introspectServer(upstream, url, { holder: caller, via: headers.get('via') ?? undefined })
  } catch (error) {
    if (error instanceof UpstreamError) throw invalidRequest(`${field}: ${error.message}`)
    throw error
  }
}
