/** The resource that a client asks for, as its user may allow it: a connection, a namespace or a view. */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { madeAtOf } from '../../auth/grants.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { notFound } from '../../errors.ts'
import type { Resource } from './oauth-metadata.ts'

export interface AskedResource extends Resource {
  /** ISO 8601: another one of the same name is not the one that was allowed. */
  readonly madeAt: string
  /** Undefined for the endpoint of a namespace or view. */
  readonly connection: AuthorizedConnection | undefined
}

/** Throws 404 for a resource that the user does not see, and 403. */
export async function findAsked(
  { authorizer }: Pick<SharedParts, 'authorizer'>,
  context: RequestContext,
  resource: Resource,
): Promise<AskedResource> {
  const { namespace, connectionId, view } = resource
  const connection =
    connectionId === undefined
      ? undefined
      : await authorizer.requireConnection(context, 'execute', { namespace, connectionId })
  if (connection === undefined) await authorizer.requireNamespace(context, namespace, 'execute')
  const madeAt = await resourceMadeAt(context, { namespace, view }, connection)
  if (madeAt === undefined) throw notFound()
  return { ...resource, connection, madeAt }
}

/** `madeAt` of a resource, and of its connection if it is one; undefined if it is gone. */
export async function resourceMadeAt(
  { directory }: Pick<RequestContext, 'directory'>,
  { namespace, view }: Pick<Resource, 'namespace' | 'view'>,
  connection: Pick<AuthorizedConnection, 'stored'> | undefined,
): Promise<string | undefined> {
  const found = await directory.namespace(namespace)
  const seen = view === undefined ? undefined : await directory.view(namespace, view)
  if (found === undefined || (view !== undefined && seen === undefined)) return undefined
  return madeAtOf(found, seen ?? connection?.stored.connection)
}
