/** The server that a write is about. */

import { auditedCaller, type Caller } from '../../auth/authenticate.ts'
import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import { notFound } from '../../errors.ts'
import { namespaceOf } from '../../model/names.ts'

/** The server that the caller manages, which must be there. Throws 404 and 403 as for its namespace. */
export async function requireLedServer(
  authorizer: Authorizer,
  context: RequestContext,
  qualifiedName: string | undefined,
  operation: 'read' | 'write',
): Promise<string> {
  // As for one that is hidden: 404, whatever the policy says.
  if (qualifiedName === undefined || (await context.directory.serverJson(qualifiedName)) === undefined) throw notFound()
  const namespace = namespaceOf(qualifiedName)
  await authorizer.requireManager(context, namespace, { resource: 'servers', operation })
  return qualifiedName
}

/** The caller of a write and its server, for the audit log. */
export function about(caller: Caller, qualifiedName: string) {
  return { ...auditedCaller(caller), server: qualifiedName }
}
