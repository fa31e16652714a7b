/** Who may do what in a namespace and to its connections: what is the same for every operation under `/connect`. */

import { LRUCache } from 'lru-cache'
import type { Refusals } from '../audit/refusals.ts'
import { type Authenticator, type Caller, reaches } from '../auth/authenticate.ts'
import { forbidden, notFound } from '../errors.ts'
import { pathOf } from '../http/path.ts'
import { grantsKeptMax, grantUrlCharsMax } from '../limits.ts'
import { isConnectionId, isSlug } from '../model/names.ts'
import { type Soon, then } from '../model/soon.ts'
import { type Access, type Decision, decide, decideOnConnection } from '../policy/decide.ts'
import type { RegistrySnapshot } from '../registry/registry.ts'
import type { StoredConnection } from '../storage/connections.ts'
import type { KnownConnections } from '../storage/known-connections.ts'

/** A caller and what it asks. */
export interface Asking {
  readonly caller: Caller
  readonly registry: RegistrySnapshot
  readonly request: Request
  readonly refusals: Refusals
}

interface Asked {
  readonly authenticator: Authenticator
  readonly refusals: Refusals
}

/** Throws 401. A promise only for a credential that was not seen before. */
export function ask({ authenticator, refusals }: Asked, request: Request): Soon<Asking> {
  return then(authenticator.authenticate(request), ({ caller, registry }) => ({ caller, registry, request, refusals }))
}

/** The decoded parts of a path, after its first; throws 404 for what cannot be decoded. */
export function partsOf(request: Request): string[] {
  try {
    const parts = pathOf(request.url).split('/').slice(2)
    return parts.some((part) => part.includes('%')) ? parts.map(decodeURIComponent) : parts
  } catch {
    throw notFound()
  }
}

/** Throws 404 unless there is such a namespace and the caller's user or organization reaches it. */
export async function reachNamespace({ caller, registry }: Asking, namespace: string | undefined): Promise<string> {
  if (namespace === undefined || !isSlug(namespace)) throw notFound()
  const record = await registry.namespace(namespace)
  if (record === undefined || !(await reaches(caller, record, registry))) throw notFound()
  return namespace
}

/** Throws 404 for what must look like absence, and 403. */
export function refuse({ caller, request, refusals }: Asking, access: Access, decision: Decision): void {
  if (decision.allowed) return
  refusals.policy(request, caller, access, decision)
  throw decision.visible ? forbidden(decision) : notFound()
}

/** May the caller do this in the namespace, whichever connection it is about? Throws 404 and 403. */
export async function enterNamespace(
  asking: Asking,
  namespace: string | undefined,
  operation: Access['operation'],
): Promise<string> {
  const reached = await reachNamespace(asking, namespace)
  const access: Access = { namespace: reached, resource: 'connections', operation, metadata: 'narrowed' }
  refuse(asking, access, decide(asking.caller.blocks, access))
  return reached
}

export interface Place {
  readonly namespace: string
  readonly connectionId: string
}

export interface EnteredConnection extends Place {
  readonly stored: StoredConnection
}

/**
 * Where callers have got to before, by what they asked: a caller stands for one generation of the registry, so what was
 * found holds as long as the connection's own generation does.
 */
const entered = new LRUCache<string, Place & { readonly generation: string }>({ max: grantsKeptMax })

/**
 * The connection of the request's path, where the caller sees it and may do this to it. Throws 404 for one that is not
 * there or not visible, always the same; then 403. A promise only where it must be found.
 */
export function enterConnection(
  asking: Asking,
  connections: KnownConnections,
  operation: Access['operation'],
): Soon<EnteredConnection> {
  const before = entered.get(nameOf(asking, operation))
  if (before !== undefined) {
    const { namespace, connectionId, generation } = before
    const found = connections.find(namespace, connectionId)
    if (!(found instanceof Promise) && found?.generation === generation) {
      return { namespace, connectionId, stored: found.stored }
    }
  }
  return find(asking, connections, operation)
}

function nameOf({ caller, request }: Asking, operation: string): string {
  return `${caller.serial} ${operation} ${request.url}`
}

async function find(
  asking: Asking,
  connections: KnownConnections,
  operation: Access['operation'],
): Promise<EnteredConnection> {
  const [first, connectionId] = partsOf(asking.request)
  const namespace = await reachNamespace(asking, first)
  if (connectionId === undefined || !isConnectionId(connectionId)) throw notFound()
  const found = await connections.find(namespace, connectionId)
  if (found === undefined) throw notFound()
  const { generation, stored } = found
  const place = { namespace, connectionId }
  expectAllowed(asking, place, stored, operation)
  if (generation !== '' && asking.request.url.length <= grantUrlCharsMax) {
    entered.set(nameOf(asking, operation), { ...place, generation })
  }
  return { ...place, stored }
}

/** Is the connection that is there one that the caller sees? */
export function sees(
  { caller }: Asking,
  { namespace, connectionId }: Place,
  { connection: { metadata } }: StoredConnection,
): boolean {
  const access: Access = { namespace, resource: 'connections', operation: 'read', metadata: { connectionId, metadata } }
  const decision = decideOnConnection(caller.blocks, access)
  return decision.allowed || decision.visible
}

/** May the caller do this to the connection that is there? Throws 404 for one that it does not see; then 403. */
export function expectAllowed(
  asking: Asking,
  { namespace, connectionId }: Place,
  { connection: { metadata } }: StoredConnection,
  operation: Access['operation'],
): void {
  const access: Access = { namespace, resource: 'connections', operation, metadata: { connectionId, metadata } }
  refuse(asking, access, decideOnConnection(asking.caller.blocks, access))
}
