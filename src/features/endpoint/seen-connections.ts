/** The connections of a namespace that a caller sees, in the order of their ids. */

import { namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import { accessibleNamespaces, firstNames } from '../../auth/namespace-access.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { decide } from '../../policy/decide.ts'
import { idOfKey, prefixOf, prefixRange } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { type PlanWork, successor } from '../connections/id-stream.ts'
import { isNarrowed, planOf } from '../connections/plan.ts'
import { mayHaveName } from './listed-names.ts'

/** Contract 20.4: connections whose lists one answer joins. Past it: 400. */
export const joinedConnectionsMax = 100

/** Undefined if the caller sees more than `joinedConnectionsMax`. Rejects as `Slices.next`. */
export async function seenConnections(
  store: Store,
  context: RequestContext,
  namespace: string,
): Promise<ConnectionRef[] | undefined> {
  const ids = await connectionIds(store, context, namespace, { from: '', most: joinedConnectionsMax + 1 })
  return ids.length > joinedConnectionsMax ? undefined : ids.map((connectionId) => ({ namespace, connectionId }))
}

/** Ids that are looked through for a listed name. Past it: as for `joinedConnectionsMax`. */
const lookedThroughMax = 1000

/** The connections that may have this listed name. Undefined if the caller sees too many. Rejects as `Slices.next`. */
export async function connectionsNamedIn(
  store: Store,
  context: RequestContext,
  namespace: string,
  listed: string,
): Promise<ConnectionRef[] | undefined> {
  // The name begins as the id does, up to a character that stands for another one.
  const lead = /^[A-Za-z0-9-]*/.exec(listed)?.[0] ?? ''
  const ids = await connectionIds(store, context, namespace, { from: lead, most: lookedThroughMax })
  const named = ids.filter((id) => mayHaveName(id, listed))
  const isLeft = ids.length === lookedThroughMax && ids.at(-1)?.startsWith(lead) === true
  if (isLeft || named.length > joinedConnectionsMax) return undefined
  return named.map((connectionId) => ({ namespace, connectionId }))
}

/** Ids of connections that the caller sees, in order, beginning at `from`; at most `most`. Rejects as `Slices.next`. */
export async function connectionIds(
  store: Store,
  { caller, request }: RequestContext,
  namespace: string,
  { from, most }: { readonly from: string; readonly most: number },
): Promise<string[]> {
  const scope = { namespace, filters: [], blocks: caller.blocks }
  const slices = allowanceOf(request).slices()
  while (slices.isOver) await slices.next()
  if (!isNarrowed(scope)) {
    const prefix = prefixOf('connection', namespace)
    const range = { ...prefixRange(prefix), gte: Buffer.concat([prefix, Buffer.from(from)]) }
    const { keys } = await store.keys({ ...range, limit: most })
    return keys.map((key) => idOfKey(prefix, key))
  }
  const work: PlanWork = { examined: 0, slices }
  const plan = planOf(store, scope, work)
  const ids: string[] = []
  for (let at = from; ids.length < most; ) {
    while (slices.isOver) await slices.next()
    const step = await plan(at)
    if (step === undefined) break
    if (step.found) ids.push(step.at)
    at = step.found ? successor(step.at) : step.at
  }
  return ids
}

interface Wanted {
  /** Only this namespace. */
  readonly namespace?: string | undefined
  /** The first connection, in the order of namespace and id. */
  readonly from?: ConnectionRef | undefined
  /** Connections in a batch. */
  readonly most: number
  /** Namespaces that are looked into; each is a read of the store. */
  readonly namespacesMax: number
}

/**
 * All connections that the caller may read or call, in batches, in the order of namespace and id. The last one is
 * `'more'` where there are more namespaces than that. Rejects as `Slices.next`, and if the client has gone meanwhile.
 */
export async function* everySeenBatch(
  store: Store,
  context: RequestContext,
  { namespace, from, most, namespacesMax }: Wanted,
): AsyncGenerator<readonly ConnectionRef[] | 'more'> {
  const { blocks } = context.caller
  const isWanted = (name: string) => {
    const access = { namespace: name, resource: 'connections', metadata: 'narrowed' } as const
    const may = (operation: 'read' | 'execute') => decide(blocks, { ...access, operation }).allowed
    return (namespace ?? name) === name && name >= (from?.namespace ?? '') && (may('read') || may('execute'))
  }
  const all = await accessibleNamespaces(store, context)
  const names = await allowanceOf(context.request).run(firstNames(all, isWanted, namespacesMax + 1)) // 429
  for (const [index, name] of names.entries()) {
    if (index === namespacesMax) yield 'more'
    if (index === namespacesMax) return
    if ((await namespaceOf(context, name)) === undefined) continue
    let at = name === from?.namespace ? from.connectionId : ''
    for (let isMore = true; isMore; ) {
      const ids = await connectionIds(store, context, name, { from: at, most })
      isMore = ids.length === most
      at = successor(ids.at(-1) ?? '')
      allowanceOf(context.request).requireClient()
      if (ids.length > 0) yield ids.map((connectionId) => ({ namespace: name, connectionId }))
    }
  }
}
