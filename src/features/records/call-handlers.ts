/** `GET /calls`: the record of calls, as far as the caller may see it. */

import { canAccessNamespace } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { managesNamespace } from '../../auth/namespace-access.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import { createdAtOf } from '../../model/organization.ts'
import { CallPage } from '../../model/recorded-call.ts'
import { matchesCall, type RecordedCall } from '../../ops/call-filter.ts'
import { decide } from '../../policy/decide.ts'
import { findConnection } from '../../storage/connections.ts'
import { fieldsOf, pageBack, readTime } from './page-back.ts'

export interface RecordsDeps extends SharedParts {
  /** Undefined where calls are not recorded. */
  readonly callsPath: string | undefined
  readonly auditPath: string
  /** Seals cursors. */
  readonly cursorKey: Buffer
}

export const callHandlers = handlersOf({ listCalls })

const filters = ['namespace', 'connection', 'tool', 'user', 'token', 'outcome', 'via'] as const
const parameters = [...filters, 'since', 'until', 'limit', 'cursor']

async function listCalls(deps: RecordsDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  const query = readQuery(request.url, parameters) // 400
  const matches = matchesCall({
    ...Object.fromEntries(filters.map((name) => [name, query.get(name)])),
    since: readTime(query, 'since'), // 400
    until: readTime(query, 'until'), // 400
  })
  const mayRead = readableCalls(deps, context)
  const about = { path: deps.callsPath, query, key: deps.cursorKey }
  const { items, nextCursor, stopped } = await pageBack(request, about, async (text) => {
    const call = fieldsOf(text) as RecordedCall | undefined
    if (call?.event !== 'call' || !matches(call) || !(await mayRead(call))) return undefined
    // The hash would let others try which arguments somebody called with.
    const { operator, userId } = context.caller
    const { args, ...others } = call
    return shown(operator || call.userId === userId ? call : others)
  }) // 400, 429
  // It may have waited and read for seconds: a credential that was revoked meanwhile reads nothing.
  await deps.authorizer.authenticate(request, true) // 401
  return wholeResponse(request, JSON.stringify({ calls: items, nextCursor, stopped }))
}

const shownFields = Object.keys(CallPage.properties.calls.items.properties)

/** Without the links of the chain, which count the calls of everybody. */
function shown(call: RecordedCall): object {
  return Object.fromEntries(Object.entries(call).filter(([name]) => shownFields.includes(name)))
}

const always = Number.NEGATIVE_INFINITY
const never = Number.POSITIVE_INFINITY

/**
 * Everybody may read the calls of their own user, those who manage a namespace its calls, and operators all; an
 * organization's key or token, those of its namespaces. A token's constraints on connections narrow that: one on
 * metadata hides the calls of a connection that is gone, or was made again, because nobody knows its metadata any more.
 */
export function readableCalls(
  { store }: RecordsDeps,
  context: RequestContext,
): (call: RecordedCall) => Promise<boolean> {
  const { caller, directory } = context
  const isEverybodys = caller.operator && caller.organizationId === undefined

  /** When the namespace was made, if the caller manages it: calls before that are of another one of its name. */
  async function managedSince(name: string): Promise<number> {
    const namespace = await directory.namespace(name)
    if (namespace === undefined || !(await canAccessNamespace(caller, namespace, directory))) return never
    return (await managesNamespace(caller, namespace, directory)) ? Date.parse(createdAtOf(namespace)) : never
  }

  /** Since when the token's constraints allow the connection. */
  async function allowedSince(namespace: string, connectionId: string): Promise<number> {
    const access = { namespace, resource: 'connections', operation: 'read' } as const
    if (!decide(caller.blocks, { ...access, metadata: 'narrowed' }).allowed) return never
    if (caller.metadataFingerprint === '') return always
    const { connection } = (await findConnection(store, namespace, connectionId)) ?? {}
    if (connection === undefined) return never
    const metadata = { connectionId, metadata: connection.metadata }
    return decide(caller.blocks, { ...access, metadata }).allowed ? Date.parse(connection.createdAt) : never
  }

  /** The lines of a page are of few namespaces and connections. */
  const managed = new Map<string, Promise<number>>()
  const allowed = new Map<string, Promise<number>>()
  return async ({ time = '', userId, namespace = '', connectionId = '' }) => {
    const at = Date.parse(time)
    const isOwn = caller.organizationId === undefined && userId === caller.userId
    if (!isOwn && !isEverybodys && !(at > (await managed.getOrInsertComputed(namespace, managedSince)))) return false
    if (caller.blocks.length === 0) return true
    const since = allowed.getOrInsertComputed(`${namespace}/${connectionId}`, () =>
      allowedSince(namespace, connectionId),
    )
    return at > (await since)
  }
}
