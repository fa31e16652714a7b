/** Which recorded calls a caller may read, and what of them (contract, 18.5). */

import { namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import { managesNamespace } from '../../auth/namespace-access.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { manyConnections } from '../../auth/stored-connections.ts'
import { createdAtOf } from '../../model/organization.ts'
import { CallPage } from '../../model/recorded-call.ts'
import type { RecordedCall } from '../../ops/call-filter.ts'
import { decide } from '../../policy/decide.ts'

export interface RecordsDeps extends SharedParts {
  /** Undefined where calls are not recorded. */
  readonly callsPath: string | undefined
  readonly auditPath: string
  /** Seals cursors. */
  readonly cursorKey: Buffer
}

/** Without the links of the chain, which count the calls of everybody. */
const shownFields = Object.keys(CallPage.properties.calls.items.properties)

/** A call as its reader may have it. */
export function shownCall({ caller: { operator, userId } }: RequestContext, call: RecordedCall): object {
  // The hash of arguments would let others try which arguments somebody called with.
  const seesArguments = operator || call.userId === userId
  const isShown = (name: string) => shownFields.includes(name) && (seesArguments || name !== 'args')
  return Object.fromEntries(Object.entries(call).filter(([name]) => isShown(name)))
}

const always = Number.NEGATIVE_INFINITY
const never = Number.POSITIVE_INFINITY

/**
 * Everybody may read the calls of their own user, those who manage a namespace its calls, and operators all; an
 * organization's key or token, those of its namespaces. A token's constraints on connections narrow that: one on
 * metadata hides the calls of a connection that is gone, or was made again, because nobody knows its metadata any more,
 * and those of a namespace that the caller has lost, because its metadata is a secret now.
 * `find`: reads a connection.
 */
export function readableCalls(
  { store }: Pick<RecordsDeps, 'store'>,
  context: RequestContext,
  find = async (namespace: string, connectionId: string) =>
    (await manyConnections(store, context.request, [{ namespace, connectionId }]))[0],
): (call: RecordedCall) => Promise<boolean> {
  const { caller, directory } = context
  const isEverybodys = caller.operator && caller.organizationId === undefined

  /** When the namespace was made, if the caller manages it: calls before that are of another one of its name. */
  async function managedSince(name: string): Promise<number> {
    const namespace = await namespaceOf(context, name)
    if (namespace === undefined) return never
    if (!(await managesNamespace(caller, namespace, directory))) return never
    context.namespaces.set(name, { createdAt: namespace.createdAt, isManaged: true })
    return Date.parse(createdAtOf(namespace))
  }

  /** Since when the token's constraints allow the connection. */
  async function allowedSince(namespace: string, connectionId: string): Promise<number> {
    const access = { namespace, resource: 'connections', operation: 'read' } as const
    if (!decide(caller.blocks, { ...access, metadata: 'narrowed' }).allowed) return never
    if (caller.metadataFingerprint === '') return always
    if ((await namespaceOf(context, namespace)) === undefined) return never
    const { connection } = (await find(namespace, connectionId)) ?? {}
    if (connection === undefined) return never
    const metadata = { connectionId, metadata: connection.metadata }
    return decide(caller.blocks, { ...access, metadata }).allowed ? Date.parse(connection.createdAt) : never
  }

  /** The lines of a page are of few namespaces and connections. */
  const managed = new Map<string, Promise<number>>()
  const allowed = new Map<string, Promise<number>>()
  return async ({ time = '', ms = 0, userId, namespace = '', connectionId = '' }) => {
    // When it began: the line was written at its end, which may be after the namespace came to another owner.
    const at = Date.parse(time) - ms
    const isOwn = caller.organizationId === undefined && userId === caller.userId
    if (!isOwn && !isEverybodys && !(at > (await managed.getOrInsertComputed(namespace, managedSince)))) return false
    if (caller.blocks.length === 0) return true
    const since = allowed.getOrInsertComputed(`${namespace}/${connectionId}`, () =>
      allowedSince(namespace, connectionId),
    )
    return at > (await since)
  }
}
