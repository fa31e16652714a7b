/** The connections of a namespace that a caller sees, in the order of their ids. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { idOfKey, prefixOf, prefixRange } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { type PlanWork, successor } from '../connections/id-stream.ts'
import { isNarrowed, planOf } from '../connections/plan.ts'

/** Contract 20.4: connections whose lists one answer joins. Past it: 400. */
export const joinedConnectionsMax = 100

/** Undefined if the caller sees more than `joinedConnectionsMax`. Rejects as `Slices.next`. */
export async function seenConnections(
  store: Store,
  { caller, request }: RequestContext,
  namespace: string,
): Promise<ConnectionRef[] | undefined> {
  const scope = { namespace, filters: [], blocks: caller.blocks }
  const most = joinedConnectionsMax + 1
  const ids: string[] = []
  if (isNarrowed(scope)) {
    const work: PlanWork = { examined: 0, slices: allowanceOf(request).slices() }
    const plan = planOf(store, scope, work)
    for (let from = ''; ids.length < most; ) {
      if (work.slices.isOver) await work.slices.next()
      const step = await plan(from)
      if (step === undefined) break
      if (step.found) ids.push(step.at)
      from = step.found ? successor(step.at) : step.at
    }
  } else {
    const prefix = prefixOf('connection', namespace)
    const { keys } = await store.keys({ ...prefixRange(prefix), limit: most })
    ids.push(...keys.map((key) => idOfKey(prefix, key)))
  }
  return ids.length < most ? ids.map((connectionId) => ({ namespace, connectionId })) : undefined
}
