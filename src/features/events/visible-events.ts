/** The part of what happens that a caller may see, narrowed as the lists are (contract, 22.4). */

import { canAccessNamespace } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { createdAtOf } from '../../model/organization.ts'
import type { RecordedCall } from '../../ops/call-filter.ts'
import { decide, namespaceFilter } from '../../policy/decide.ts'
import { findConnection } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import { versionText } from '../../storage/versions.ts'
import { type HealthDeps, healthOfAll } from '../health/stored-health.ts'
import { readableCalls, seesArguments, shownCall } from '../records/readable-calls.ts'
import type { EventType, KeptEvent } from './event-log.ts'

/** The bytes that a listener gets of an event; undefined if none. */
export type Visible = (event: KeptEvent) => Promise<Uint8Array | undefined>

interface Wanted {
  readonly namespace: string | undefined
  readonly types: ReadonlySet<EventType>
}

export function createVisible(deps: HealthDeps, context: RequestContext, { namespace, types }: Wanted): Visible {
  // Made for each event: what it has looked up may be otherwise by the next one.
  const mayRead = (event: KeptEvent, call: RecordedCall) =>
    readableCalls(deps, context, async (of, connectionId) => {
      const version = versionText(await deps.store.get(keyOf('connectionsVersion', of)))
      return event.connection(version, () => findConnection(deps.store, of, connectionId))
    })(call)
  const { caller, directory } = context
  const isNamed = namespaceFilter(caller.blocks)
  const isOperator = caller.operator && caller.token === undefined && caller.organizationId === undefined
  return async (event) => {
    const { happening } = event
    if (!types.has(happening.type)) return undefined
    if (happening.type === 'connection') {
      const health = await healthFor(happening.ref, event.time)
      return health && event.written(health)
    }
    if (happening.type === 'audit')
      return isOperator && namespace === undefined ? event.writtenOnce('entry', () => happening.entry) : undefined
    const of = happening.type === 'call' ? happening.call : happening.client
    if ((namespace ?? of.namespace) !== of.namespace || !(await mayRead(event, of))) return undefined
    if (happening.type === 'client') return event.writtenOnce('client', () => happening.client)
    const { call } = happening
    const isWhole = seesArguments(context, call)
    return event.writtenOnce(isWhole ? 'whole' : 'others', () => shownCall(context, call))
  }

  async function healthFor(ref: ConnectionRef, time: number): Promise<object | undefined> {
    if ((namespace ?? ref.namespace) !== ref.namespace || !isNamed(ref.namespace)) return undefined
    const owned = await directory.namespace(ref.namespace)
    if (owned === undefined || !(await canAccessNamespace(caller, owned, directory))) return undefined
    // It happened in an earlier namespace of this name.
    if (Date.parse(createdAtOf(owned)) > time) return undefined
    const [health] = await healthOfAll(deps, context, [ref])
    if (health !== undefined) return { namespace: ref.namespace, ...health }
    // It is gone, or the caller may not read it. Of one that is gone nobody knows the metadata any more.
    const access = {
      namespace: ref.namespace,
      resource: 'connections',
      operation: 'read',
      metadata: 'narrowed',
    } as const
    if (caller.metadataFingerprint !== '' || !decide(caller.blocks, access).allowed) return undefined
    const stored = await findConnection(deps.store, ref.namespace, ref.connectionId)
    return stored === undefined ? { ...ref, level: 'off', summary: 'Deleted', since: null, action: null } : undefined
  }
}
