/** The server that a request is about: its name in the path, whether the caller manages it, and what it has. */

import { auditedCaller, type Caller } from '../../auth/authenticate.ts'
import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { nameAfter } from '../../http/path.ts'
import { isQualifiedName, namespaceOf } from '../../model/names.ts'
import { type Introspection, introspectServer } from '../../upstream/introspect.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'

/**
 * The qualifiedName in a path: `ns/server` or `ns%2Fserver`, or `ns` for a namespace-only server (contract, 9.1), which
 * may end in a slash: `/servers/ns%2F`. Undefined for a path that cannot name a server.
 */
export function readQualifiedName(url: string): string | undefined {
  const name = nameAfter('/servers/', url)?.replace(/^([^/]+)\/$/, '$1')
  return name !== undefined && isQualifiedName(name) ? name : undefined
}

/** The server that the caller manages, which must be there. Throws 404 and 403 as for its namespace. */
export async function requireLedServer(
  authorizer: Authorizer,
  context: RequestContext,
  qualifiedName: string | undefined,
  operation: 'read' | 'write',
): Promise<string> {
  // As for one that is hidden: 404, whatever the policy says.
  if (qualifiedName === undefined || !(await context.directory.hasServer(qualifiedName))) throw notFound()
  const namespace = namespaceOf(qualifiedName)
  await authorizer.requireManager(context, namespace, { resource: 'servers', operation })
  return qualifiedName
}

/** The caller of a write and its server, for the audit log. */
export function about(caller: Caller, qualifiedName: string) {
  return { ...auditedCaller(caller), server: qualifiedName }
}

/**
 * Asks the server at a URL what it has, for the caller of a request. Throws `invalid_request` for an address that must
 * not be reached; it names the `field` that the URL is in.
 */
export async function introspectFor(
  upstream: Upstream,
  { url, field }: { readonly url: string; readonly field: string },
  request: Request,
  caller: Caller,
): Promise<Introspection> {
  try {
    const asking = { holder: caller, via: request.headers.get('via') ?? undefined }
    return await introspectServer(upstream, url, asking, allowanceOf(request))
  } catch (error) {
    if (error instanceof UpstreamError) throw invalidRequest(`${field}: ${error.message}`)
    throw error
  }
}
