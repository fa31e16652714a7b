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
export class VisibleEvents {
  readonly #deps: HealthDeps
  readonly #context: RequestContext
  readonly #wanted: Wanted
  readonly #isOperator: boolean
  readonly #isNamed: (namespace: string) => boolean
  readonly #closed = new Set<string>()

  constructor(deps: HealthDeps, context: RequestContext, wanted: Wanted) {
    const { caller } = context
    this.#deps = deps
    this.#context = context
    this.#wanted = wanted
    this.#isOperator = caller.operator && caller.token === undefined && caller.organizationId === undefined
    this.#isNamed = namespaceFilter(caller.blocks)
  }

  /**
   * Whether it is known without waiting that the listener sees nothing of the event. Such an event takes no room among
   * those that wait: others may cause thousands in a second.
   */
  isHidden({ happening }: KeptEvent): boolean {
    const { namespace, types } = this.#wanted
    if (!types.has(happening.type)) return true
    if (happening.type === 'audit') return !this.#isOperator || namespace !== undefined
    const of = placeOf(happening)
    if ((namespace ?? of.namespace) !== of.namespace) return true
    return this.#closed.has(of.namespace) && of.userId !== this.#context.caller.userId
  }

  /** The bytes that the listener gets of the event; undefined if none. */
  async bytesOf(event: KeptEvent): Promise<Uint8Array | undefined> {
    const { happening } = event
    if (this.isHidden(event)) return undefined
    if (happening.type === 'audit') return event.written(happening.entry)
    if (!this.#isOperator) await this.#lookAt(placeOf(happening).namespace)
    if (happening.type === 'connection') {
      const health = await this.#healthFor(happening.ref, event.time)
      return health && event.written(health)
    }
    if (happening.type === 'client') {
      return (await this.#mayRead(event, happening.client)) ? event.written(happening.client) : undefined
    }
    const call = { ...happening.call, event: 'call', time: new Date(event.time).toISOString() }
    return (await this.#mayRead(event, call)) ? event.written(shownCall(this.#context, call)) : undefined
  }

  /** Made for each event: the connection that it looks up may be otherwise by the next one. */
  #mayRead(event: KeptEvent, call: RecordedCall) {
    const { store } = this.#deps
    const isReadable = readableCalls(this.#deps, this.#context, async (namespace, connectionId) => {
      const version = versionText(await store.get(keyOf('connectionsVersion', namespace)))
      return event.connection(version, () => findConnection(store, namespace, connectionId))
    })
    return isReadable(call)
  }

  /** Remembers a namespace without access. One that does not exist may be made any moment. */
  async #lookAt(name: string): Promise<void> {
    const exists = (await this.#context.directory.namespace(name)) !== undefined
    if (!exists || (await namespaceOf(this.#context, name)) !== undefined) return
    if (this.#closed.size >= closedNamespacesMax) this.#closed.clear()
    this.#closed.add(name)
  }

  async #healthFor(ref: ConnectionRef, time: number): Promise<object | undefined> {
    const { namespace, connectionId } = ref
    if (!this.#isNamed(namespace)) return undefined
    const owned = await namespaceOf(this.#context, namespace)
    if (owned === undefined) return undefined
    // It happened in an earlier namespace of this name.
    if (Date.parse(createdAtOf(owned)) > time) return undefined
    const [health] = await healthOfAll(this.#deps, this.#context, [ref])
    if (health !== undefined) return { namespace, ...health }
    // It is gone, or the caller may not read it. Of one that is gone nobody knows the metadata any more.
    const { caller } = this.#context
    const access = { namespace, resource: 'connections', operation: 'read', metadata: 'narrowed' } as const
    if (caller.metadataFingerprint !== '' || !decide(caller.blocks, access).allowed) return undefined
    const stored = await findConnection(this.#deps.store, namespace, connectionId)
    return stored === undefined ? { ...ref, level: 'off', summary: 'Deleted', since: null, action: null } : undefined
  }
}

/** Where something happened, and by whom if it is a call or a client. */
function placeOf(happening: Exclude<Happening, { type: 'audit' }>) {
  if (happening.type === 'connection') return { namespace: happening.ref.namespace, userId: undefined }
  const { namespace = '', userId } = happening.type === 'call' ? happening.call : happening.client
  return { namespace, userId }
}
