/** Authorizes access to namespaces and connections. 404 always precedes 403, so that hidden things look absent. */

import type { Clock } from '../clock.ts'
import { forbidden, namespaceMissing, notFound, PlatformError } from '../errors.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import { namesInPath } from '../http/path.ts'
import { authorizationFreshMs } from '../limits.ts'
import type { ConnectionRef } from '../model/connection.ts'
import type { OperationKind } from '../model/constraint.ts'
import { isConnectionId, isSlug } from '../model/names.ts'
import type { Namespace } from '../model/organization.ts'
import { PerRequest } from '../per-request.ts'
import { type Access, type Decision, decide, decideOnConnection, decideOnList } from '../policy/decide.ts'
import type { StoredConnection } from '../storage/connections.ts'
import type { Store } from '../storage/store.ts'
import { type Authenticated, type Authenticator, canAccessNamespace } from './authenticate.ts'
import type { Denials } from './denials.ts'
import { managesNamespace } from './namespace-access.ts'
import { oneConnection } from './stored-connections.ts'

/** An authenticated request, with the rights that its caller had at one moment. */
export interface RequestContext extends Authenticated {
  readonly request: Request
  /** That moment, by the monotonic clock: what was waited for since may have taken the rights away. */
  readonly at: number
  /** The namespaces that its caller was found to access so far: its answer may tell of them. */
  readonly namespaces: Map<string, Accessed>
}

interface Accessed {
  /** Undefined: it does not matter which one of this name it is. */
  readonly createdAt?: string | undefined
  /** Whether the answer depends on that the caller manages it. */
  readonly isManaged?: boolean
}

/** Whether a request need not be authorized again: later its credential or the connection may have gone. */
export function isFresh({ clock }: { readonly clock: Pick<Clock, 'monotonic'> }, { at }: Pick<RequestContext, 'at'>) {
  return clock.monotonic() - at <= authorizationFreshMs
}

/** The context of a request whose caller has its rights at this moment. */
export function contextOf<T extends Authenticated>(
  authenticated: T,
  request: Request,
  clock: Pick<Clock, 'monotonic'>,
): T & RequestContext {
  return { ...authenticated, request, at: clock.monotonic(), namespaces: new Map() }
}

export interface AuthorizedConnection extends ConnectionRef {
  /** Shared with other requests; must not be modified. */
  readonly stored: StoredConnection
}

export type Authorizer = ReturnType<typeof createAuthorizer>

type ResourceAccess = Pick<Access, 'resource' | 'operation'>

/** Throws 403 for a token, and for an organization's key: neither may make what outlives it (contract, 4.6). */
export function requireApiKey({ caller }: RequestContext, things = 'Organizations'): void {
  const start = `${things} are managed with the API key of a user`
  if (caller.token !== undefined) throw new PlatformError('forbidden', `${start}, not with a token`)
  if (caller.organizationId !== undefined)
    throw new PlatformError('forbidden', `${start}, not with one of an organization`)
}

/** Throws 403 for everybody but operators with their API key. `things`: as for `requireApiKey`. */
export function requireOperator(
  context: RequestContext,
  message = 'Only operators may do this: use the API key of an operator',
  things = 'Keys, grants and logs of all users',
): undefined {
  requireApiKey(context, things)
  if (!context.caller.operator) throw new PlatformError('forbidden', message)
}

/** Makes a function that requires a manager of the namespace in a path, for a write, and throws 404 and 403. */
export function managedBy({ authorizer }: { readonly authorizer: Pick<Authorizer, 'requireManager'> }) {
  const toWrite = { resource: 'namespaces', operation: 'write' } as const
  return (context: RequestContext) => authorizer.requireManager(context, namesInPath(context.request.url)[0], toWrite)
}

/** `denials` records every denial. */
export function createAuthorizer(
  authenticator: Pick<Authenticator, 'authenticate'>,
  store: Pick<Store, 'getMany'>,
  denials: Pick<Denials, 'recordPolicyDenial' | 'recordWriteRefusal'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  /** Throws the error for a denying decision, and records it: 404 if the thing must look absent, otherwise 403. */
  function enforce(decision: Decision, { caller, request }: RequestContext, access: Access, missing?: string): void {
    if (decision.allowed) return
    denials.recordPolicyDenial(request, caller, access, decision)
    throw decision.visible ? forbidden(decision) : notFound(missing)
  }

  function requireByPolicy(
    context: RequestContext,
    { stored, ...ref }: AuthorizedConnection,
    operation: OperationKind,
  ) {
    const access = accessTo(ref, stored, operation)
    enforce(decideOnConnection(context.caller.blocks, access), context, access)
  }

  /** The namespace, if the caller may perform the operation on at least some of its connections. Throws 404 and 403. */
  async function requireNamespace(context: RequestContext, name: string | undefined, operation: OperationKind) {
    const found = await accessibleNamespace(context, name)
    const { namespace } = found
    const access: Access = { namespace, resource: 'connections', operation, metadata: 'narrowed' }
    enforce(decide(context.caller.blocks, access), context, access)
    return found
  }

  /** Reads the connection without asking the policy. Throws 404. */
  async function existing({ request }: RequestContext, namespace: string, connectionId: string | undefined) {
    if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
    const stored = await oneConnection(store, request, { namespace, connectionId })
    if (stored === undefined) throw notFound()
    return { namespace, connectionId, stored }
  }

  return {
    /** Authenticates the request; see `Authenticator` for `isRepeated`. Throws 401 and 429. */
    async authenticate(request: Request, isRepeated?: boolean): Promise<RequestContext> {
      // A credential takes up to half a millisecond to look at: those of a network are looked at a few in each pass.
      if (!isRepeated) await allowanceOf(request).pass()
      return contextOf(await authenticator.authenticate(request, isRepeated), request, clock)
    },
    requireNamespace,
    /** The namespace, if the caller may read or call some connections, or the one of this id. Throws 404 and 403. */
    async requireReadOrCall(context: RequestContext, name: string | undefined, connectionId?: string) {
      const found = await accessibleNamespace(context, name)
      const { namespace } = found
      const { blocks } = context.caller
      // Only what neither of the two allows is a refusal, and so recorded.
      const calls: Access = { namespace, resource: 'connections', operation: 'execute', metadata: 'narrowed' }
      if (connectionId === undefined)
        return decide(blocks, calls).allowed ? found : requireNamespace(context, name, 'read')
      const connection = await existing(context, namespace, connectionId)
      if (!decideOnConnection(blocks, accessTo(connection, connection.stored, 'execute')).allowed)
        requireByPolicy(context, connection, 'read')
      return found
    },
    /** The namespace, for work on it or its servers (contract, 4.5); only managers write. Throws 404, then 403. */
    async requireManager(context: RequestContext, name: string | undefined, wanted: ResourceAccess) {
      const { caller, directory, request } = context
      if (name === undefined || !isSlug(name)) throw notFound(namespaceMissing)
      const access: Access = { ...wanted, namespace: name, metadata: 'none' }
      const decision = decide(caller.blocks, access)
      if (!decision.allowed) denials.recordPolicyDenial(request, caller, access, decision)
      if (!decision.allowed && !decision.visible) throw notFound(namespaceMissing)
      const namespace = await accessibleNamespace(context, name, namespaceMissing)
      if (!decision.allowed) throw forbidden(decision)
      if (wanted.operation === 'read' || (await managesNamespace(caller, namespace, directory))) return namespace
      denials.recordWriteRefusal(request, caller, name, 'not_led')
      throw new PlatformError('forbidden', notManaged)
    },
    /** For a namespace that may not exist yet. Throws 404 if the policy hides the name; then 403. */
    requireAllowed(context: RequestContext, namespace: string, wanted: ResourceAccess): void {
      const access: Access = { ...wanted, namespace, metadata: 'none' }
      enforce(decide(context.caller.blocks, access), context, access, namespaceMissing)
    },
    /** For a list that is narrowed to the namespaces that the policy allows. Throws 403. */
    requireList(context: RequestContext, wanted: ResourceAccess): void {
      const decision = decideOnList(context.caller.blocks, { ...wanted, metadata: 'none' })
      enforce(decision, context, { ...wanted, namespace: '', metadata: 'none' })
    },
    /** The connection in the path, or the named one. Throws the same 404 if it is hidden or missing; then 403. */
    async requireConnection(context: RequestContext, operation: OperationKind, named?: ConnectionRef) {
      const [first, connectionId] =
        named === undefined ? namesInPath(context.request.url) : [named.namespace, named.connectionId]
      const { namespace } = await accessibleNamespace(context, first)
      const connection = await existing(context, namespace, connectionId)
      requireByPolicy(context, connection, operation)
      return connection
    },
    /** As `requireConnection`, for one that was read already. */
    async requireAccess(context: RequestContext, connection: AuthorizedConnection, operation: OperationKind) {
      await accessibleNamespace(context, connection.namespace)
      requireByPolicy(context, connection, operation)
    },
  }
}

/**
 * From authentication on, a request counts for the owner of its credential, and is for the namespaces that it found
 * first: not for another one of the same name that was made meanwhile.
 */
export function countedByOwner(authorizer: Authorizer, clock: Pick<Clock, 'monotonic'>): Authorizer {
  const found = new PerRequest<RequestContext['namespaces']>()
  return {
    ...authorizer,
    async authenticate(request, isRepeated) {
      let context = await authorizer.authenticate(request, isRepeated)
      const allowance = allowanceOf(request)
      const place = allowance.belongsTo(context.caller)
      if (place !== undefined) {
        await place // 429
        // Its credential may have been revoked meanwhile, or its rights have changed. A pass takes a few milliseconds.
        if (allowance.costs.reads !== 'few' || !isFresh({ clock }, context))
          context = await authorizer.authenticate(request, true)
      }
      const namespaces = found.get(request)
      if (namespaces !== undefined) return { ...context, namespaces }
      found.set(request, context.namespaces)
      return context
    },
  }
}

const notManaged =
  'Only the user who owns this namespace, an owner, admin or key of its organization, or an operator may change it'

/** The namespace, if it is the one that the request found before, and the caller may access it. */
export async function namespaceOf(
  { caller, directory, namespaces }: RequestContext,
  name: string | undefined,
): Promise<Namespace | undefined> {
  const namespace = name === undefined || !isSlug(name) ? undefined : await directory.namespace(name)
  if (namespace === undefined || !(await canAccessNamespace(caller, namespace, directory))) return undefined
  const known = namespaces.get(namespace.namespace)
  if (known?.createdAt === undefined) namespaces.set(namespace.namespace, { ...known, createdAt: namespace.createdAt })
  // Meanwhile it was deleted, and its name is another one's.
  else if (known.createdAt !== namespace.createdAt) return undefined
  return namespace
}

/** Throws 404 unless the caller may access the namespace. `missing`: its text. */
async function accessibleNamespace(context: RequestContext, name: string | undefined, missing?: string) {
  const namespace = await namespaceOf(context, name)
  if (namespace === undefined) throw notFound(missing)
  return namespace
}

/** Notes that an answer tells of a namespace that the caller may access. */
export function noteTold({ namespaces }: RequestContext, name: string): void {
  namespaces.getOrInsert(name, {})
}

export function sees({ caller }: RequestContext, ref: ConnectionRef, stored: StoredConnection): boolean {
  const decision = decideOnConnection(caller.blocks, accessTo(ref, stored, 'read'))
  return decision.allowed || decision.visible
}

/** An operation on an existing connection, as a policy sees it. */
export function accessTo(
  { namespace, connectionId }: ConnectionRef,
  { connection: { metadata } }: Pick<StoredConnection, 'connection'>,
  operation: OperationKind,
): Access {
  return { namespace, resource: 'connections', operation, metadata: { connectionId, metadata } }
}
