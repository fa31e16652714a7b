/**
 * The resource that a client asks for, as its user may allow it: a connection, or the endpoint of a namespace or view.
 */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { notFound } from '../../errors.ts'
import { createdAtOf } from '../../model/organization.ts'
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
  if (connectionId !== undefined) {
    const connection = await authorizer.requireConnection(context, 'execute', { namespace, connectionId })
    return { ...resource, connection, madeAt: connection.stored.connection.createdAt }
  }
  await authorizer.requireNamespace(context, namespace, 'execute')
  const madeAt = await endpointMadeAt(context, { namespace, view })
  if (madeAt === undefined) throw notFound()
  return { ...resource, connection: undefined, madeAt }
}

/** When the view or namespace of an endpoint was made; undefined if there is none. */
export async function endpointMadeAt(
  { directory }: Pick<RequestContext, 'directory'>,
  { namespace, view }: Pick<Resource, 'namespace' | 'view'>,
): Promise<string | undefined> {
  if (view !== undefined) return (await directory.view(namespace, view))?.createdAt
  const found = await directory.namespace(namespace)
  return found && createdAtOf(found)
}
