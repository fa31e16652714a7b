/** The part of what happens that a caller may see, narrowed as the lists are (contract, 22.4). */

import { namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { createdAtOf } from '../../model/organization.ts'
import type { RecordedCall } from '../../ops/call-filter.ts'
import { decide, namespaceFilter } from '../../policy/decide.ts'
import { findConnection } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import { versionText } from '../../storage/versions.ts'
import { type HealthDeps, healthOfAll } from '../health/stored-health.ts'
import { readableCalls, shownCall } from '../records/readable-calls.ts'
import type { EventType, Happening, KeptEvent } from './event-log.ts'

/** Namespaces that a stream knows its listener has no access to, some hundred bytes each. Past it: looked up again. */
const closedNamespacesMax = 1000

export interface Wanted {
  readonly namespace: string | undefined
  readonly types: ReadonlySet<EventType>
}

/** The events that a listener may see, as its rights are at one moment. */
export function visibleTo(deps: HealthDeps, context: RequestContext, { namespace: only, types }: Wanted) {
  const { store } = deps
  const { caller, directory } = context
  const isOperator = caller.operator && caller.token === undefined && caller.organizationId === undefined
  const isNamed = namespaceFilter(caller.blocks)
  const closed = new Set<string>()

  /**
   * Whether it is known without waiting that the listener sees nothing of the event. Such an event takes no room among
   * those that wait: others may cause thousands in a second.
   */
  function isHidden({ happening }: KeptEvent): boolean {
    if (!types.has(happening.type)) return true
    if (happening.type === 'audit') return !isOperator || only !== undefined
    const of = placeOf(happening)
    if ((only ?? of.namespace) !== of.namespace) return true
    return closed.has(of.namespace) && of.userId !== caller.userId
  }

  /** The bytes that the listener gets of the event; undefined if none. */
  async function bytesOf(event: KeptEvent): Promise<Uint8Array | undefined> {
    const { happening } = event
    if (isHidden(event)) return undefined
    if (happening.type === 'audit') return event.written(happening.entry)
    if (!isOperator) await lookAt(placeOf(happening).namespace)
    if (happening.type === 'connection') {
      const health = await healthFor(happening.ref, event.time)
      return health && event.written(health)
    }
    if (happening.type === 'client') {
      return (await mayRead(event, happening.client)) ? event.written(happening.client) : undefined
    }
    const call = { ...happening.call, event: 'call', time: new Date(event.time).toISOString() }
    return (await mayRead(event, call)) ? event.written(shownCall(context, call)) : undefined
  }

  /** Made for each event: the connection that it looks up may be otherwise by the next one. */
  function mayRead(event: KeptEvent, call: RecordedCall) {
    const isReadable = readableCalls(deps, context, async (namespace, connectionId) => {
      const version = versionText(await store.get(keyOf('connectionsVersion', namespace)))
      return event.connection(version, () => findConnection(store, namespace, connectionId))
    })
    return isReadable(call)
  }

  /** Remembers a namespace without access. One that does not exist may be made any moment. */
  async function lookAt(name: string): Promise<void> {
    const exists = (await directory.namespace(name)) !== undefined
    if (!exists || (await namespaceOf(context, name)) !== undefined) return
    if (closed.size >= closedNamespacesMax) closed.clear()
    closed.add(name)
  }

  async function healthFor(ref: ConnectionRef, time: number): Promise<object | undefined> {
    const { namespace, connectionId } = ref
    if (!isNamed(namespace)) return undefined
    const owned = await namespaceOf(context, namespace)
    // It happened in an earlier namespace of this name.
    if (owned === undefined || Date.parse(createdAtOf(owned)) > time) return undefined
    const [health] = await healthOfAll(deps, context, [ref])
    if (health !== undefined) return { namespace, ...health }
    // It is gone, or the caller may not read it. Of one that is gone nobody knows the metadata any more.
    const access = { namespace, resource: 'connections', operation: 'read', metadata: 'narrowed' } as const
    if (caller.metadataFingerprint !== '' || !decide(caller.blocks, access).allowed) return undefined
    const stored = await findConnection(store, namespace, connectionId)
    return stored === undefined ? { ...ref, level: 'off', summary: 'Deleted', since: null, action: null } : undefined
  }

  return { isHidden, bytesOf }
}

/** Where something happened, and by whom if it is a call or a client. */
function placeOf(happening: Exclude<Happening, { type: 'audit' }>) {
  if (happening.type === 'connection') return { namespace: happening.ref.namespace, userId: undefined }
  const { namespace = '', userId } = happening.type === 'call' ? happening.call : happening.client
  return { namespace, userId }
}
