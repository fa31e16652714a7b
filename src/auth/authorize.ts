/** What a caller may reach: what is the same for every operation on a namespace and its connections. */

import { forbidden, notFound } from '../errors.ts'
import { pathSegments } from '../http/path.ts'
import { isConnectionId, isSlug } from '../model/names.ts'
import { type Access, type Decision, decide, decideOnConnection } from '../policy/decide.ts'
import { findConnection, type StoredConnection } from '../storage/connections.ts'
import type { Store } from '../storage/store.ts'
import { type Authenticator, type Caller, canReachNamespace } from './authenticate.ts'
import type { Denials } from './denials.ts'
import type { RegistrySnapshot } from './registry.ts'

/** A request whose caller is known. */
export interface RequestContext {
  readonly caller: Caller
  readonly registry: RegistrySnapshot
  readonly request: Request
}

export interface ConnectionRef {
  readonly namespace: string
  readonly connectionId: string
}

export interface AuthorizedConnection extends ConnectionRef {
  /** Shared by everyone who asks: not to be changed. */
  readonly stored: StoredConnection
}

export interface Authorizer {
  /** Throws 401 and 429. */
  authenticate(request: Request): Promise<RequestContext>
  /** May the caller do this in the namespace, whichever connection it is about? Throws 404 and 403. */
  namespace(context: RequestContext, namespace: string | undefined, operation: Access['operation']): Promise<string>
  /**
   * The connection of the request's path, where the caller sees it and may do this to it. Throws 404 for one that is
   * not there or not visible, always the same; then 403.
   */
  connection(context: RequestContext, operation: Access['operation']): Promise<AuthorizedConnection>
  /** May the caller do this to the connection that is there? Throws 404 for one that it does not see; then 403. */
  stored(context: RequestContext, ref: ConnectionRef, stored: StoredConnection, operation: Access['operation']): void
  /** Throws what the decision answers: 404 for what must look like absence, and 403. */
  allow(context: RequestContext, access: Access, decision: Decision): void
}

export interface AuthorizerDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly store: Pick<Store, 'getMany'>
  /** Told of every denial. */
  readonly denials: Pick<Denials, 'policy'>
}

export function createAuthorizer({ authenticator, store, denials }: AuthorizerDeps): Authorizer {
  function allow({ caller, request }: RequestContext, access: Access, decision: Decision): void {
    if (decision.allowed) return
    denials.policy(request, caller, access, decision)
    throw decision.visible ? forbidden(decision) : notFound()
  }

  function stored(
    context: RequestContext,
    { namespace, connectionId }: ConnectionRef,
    { connection: { metadata } }: StoredConnection,
    operation: Access['operation'],
  ): void {
    const access: Access = { namespace, resource: 'connections', operation, metadata: { connectionId, metadata } }
    allow(context, access, decideOnConnection(context.caller.blocks, access))
  }

  return {
    allow,
    stored,
    async authenticate(request) {
      const { caller, registry } = await authenticator.authenticate(request)
      return { caller, registry, request }
    },
    async namespace(context, name, operation) {
      const namespace = await reachableNamespace(context, name)
      const access: Access = { namespace, resource: 'connections', operation, metadata: 'narrowed' }
      allow(context, access, decide(context.caller.blocks, access))
      return namespace
    },
    async connection(context, operation) {
      const [first, connectionId] = pathSegments(context.request.url)
      const namespace = await reachableNamespace(context, first)
      if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
      const found = await findConnection(store, namespace, connectionId)
      if (found === undefined) throw notFound()
      const ref = { namespace, connectionId }
      stored(context, ref, found, operation)
      return { ...ref, stored: found }
    },
  }
}

/** Throws 404 unless there is such a namespace and the caller's user or organization reaches it. */
async function reachableNamespace({ caller, registry }: RequestContext, name: string | undefined): Promise<string> {
  if (name === undefined || !isSlug(name)) throw notFound()
  const namespace = await registry.namespace(name)
  if (namespace === undefined || !(await canReachNamespace(caller, namespace, registry))) throw notFound()
  return name
}

/** Does the caller see the connection that is there? */
export function sees(
  { caller }: RequestContext,
  { namespace, connectionId }: ConnectionRef,
  { connection: { metadata } }: StoredConnection,
): boolean {
  const access: Access = { namespace, resource: 'connections', operation: 'read', metadata: { connectionId, metadata } }
  const decision = decideOnConnection(caller.blocks, access)
  return decision.allowed || decision.visible
}
