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
import { readableCalls, seesArguments, shownCall } from '../records/readable-calls.ts'
import type { EventType, Happening, KeptEvent } from './event-log.ts'

/** Namespaces that a stream knows its listener has no access to, some hundred bytes each. Past it: looked up again. */
const closedNamespacesMax = 1000

/** The events that a listener may see, as its rights are at one moment. */
export interface Visible {
  /**
   * Whether it is known without waiting that the listener sees nothing of the event. Such an event takes no room among
   * those that wait: others may cause thousands in a second.
   */
  isHidden(event: KeptEvent): boolean
  /** The bytes that the listener gets of the event; undefined if none. */
  bytesOf(event: KeptEvent): Promise<Uint8Array | undefined>
}

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
  const closed = new Set<string>()

  function isHidden({ happening }: KeptEvent): boolean {
    if (!types.has(happening.type)) return true
    if (happening.type === 'audit') return !isOperator || namespace !== undefined
    const of = placeOf(happening)
    if ((namespace ?? of.namespace) !== of.namespace) return true
    return closed.has(of.namespace) && of.userId !== caller.userId
  }

  /** Remembers a namespace without access. One that does not exist may be made any moment. */
  async function lookAt(name: string): Promise<void> {
    if ((await directory.namespace(name)) === undefined || (await namespaceOf(context, name)) !== undefined) return
    if (closed.size >= closedNamespacesMax) closed.clear()
    closed.add(name)
  }

  async function bytesOf(event: KeptEvent): Promise<Uint8Array | undefined> {
    const { happening } = event
    if (isHidden(event)) return undefined
    if (happening.type === 'audit') return event.writtenOnce('entry', () => happening.entry)
    if (!isOperator) await lookAt(placeOf(happening).namespace)
    if (happening.type === 'connection') {
      const health = await healthFor(happening.ref, event.time)
      return health && event.written(health)
    }
    const of = happening.type === 'call' ? happening.call : happening.client
    if (!(await mayRead(event, of))) return undefined
    if (happening.type === 'client') return event.writtenOnce('client', () => happening.client)
    const { call } = happening
    const isWhole = seesArguments(context, call)
    return event.writtenOnce(isWhole ? 'whole' : 'others', () => shownCall(context, call))
  }

  return { isHidden, bytesOf }

  async function healthFor(ref: ConnectionRef, time: number): Promise<object | undefined> {
    if (!isNamed(ref.namespace)) return undefined
    const owned = await namespaceOf(context, ref.namespace)
    if (owned === undefined) return undefined
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

/** Where something happened, and by whom if it is a call or a client. */
function placeOf(happening: Exclude<Happening, { type: 'audit' }>) {
  if (happening.type === 'connection') return { namespace: happening.ref.namespace, userId: undefined }
  const { namespace = '', userId } = happening.type === 'call' ? happening.call : happening.client
  return { namespace, userId }
}
