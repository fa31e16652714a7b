/** The part of what happens that a caller may see, narrowed as the lists are (contract, 22.4). */

import { canAccessNamespace } from '../../auth/authenticate.ts'
import { type RequestContext, sees } from '../../auth/authorizer.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { findConnection } from '../../storage/connections.ts'
import { type HealthDeps, healthOfAll } from '../health/stored-health.ts'
import { readableCalls, shownCall } from '../records/readable-calls.ts'
import type { EventType, Happening } from './event-log.ts'

/** The data that a listener gets of an event; undefined if none. */
export type Visible = (happening: Happening) => Promise<object | undefined>

interface Wanted {
  readonly namespace: string | undefined
  readonly types: ReadonlySet<EventType>
}

export function createVisible(deps: HealthDeps, context: RequestContext, { namespace, types }: Wanted): Visible {
  const mayRead = readableCalls(deps, context)
  const { caller, directory } = context
  const isNamed = namespaceFilter(caller.blocks)
  const isOperator = caller.operator && caller.token === undefined && caller.organizationId === undefined
  return async (happening) => {
    if (!types.has(happening.type)) return undefined
    if (happening.type === 'audit') return isOperator && namespace === undefined ? happening.entry : undefined
    if (happening.type === 'call') {
      const { call } = happening
      if ((namespace ?? call.namespace) !== call.namespace || !(await mayRead(call))) return undefined
      return shownCall(context, call)
    }
    if (happening.type === 'client') {
      const { client } = happening
      return (namespace ?? client.namespace) === client.namespace && (await mayRead(client)) ? client : undefined
    }
    const { ref } = happening
    if ((namespace ?? ref.namespace) !== ref.namespace || !isNamed(ref.namespace)) return undefined
    const owned = await directory.namespace(ref.namespace)
    if (owned === undefined || !(await canAccessNamespace(caller, owned, directory))) return undefined
    const [health] = await healthOfAll(deps, context, [ref])
    if (health !== undefined) return { namespace: ref.namespace, ...health }
    // It is gone: whoever saw its namespace without a constraint on metadata saw it.
    if (caller.metadataFingerprint !== '') return undefined
    const stored = await findConnection(deps.store, ref.namespace, ref.connectionId)
    if (stored !== undefined && !sees(context, ref, stored)) return undefined
    return stored === undefined ? { ...ref, level: 'off', summary: 'Deleted', since: null, action: null } : undefined
  }
}
