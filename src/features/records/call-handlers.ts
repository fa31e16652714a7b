/** `GET /calls`: the record of calls, as far as the caller may see it. */

import { canAccessNamespace } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { managesNamespace } from '../../auth/namespace-access.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
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
    const call = fieldsOf({ text }) as RecordedCall | undefined
    if (call?.event !== 'call' || !matches(call) || !(await mayRead(call))) return undefined
    return shown(call)
  }) // 400, 429
  return wholeResponse(request, JSON.stringify({ calls: items, nextCursor, stopped }))
}

const shownFields = Object.keys(CallPage.properties.calls.items.properties)

/** Without the links of the chain, which count the calls of everybody. */
function shown(call: RecordedCall): object {
  return Object.fromEntries(Object.entries(call).filter(([name]) => shownFields.includes(name)))
}

/**
 * Everybody may read the calls of their own user, those who manage a namespace its calls, and operators all; an
 * organization's key or token, those of its namespaces. A token's constraints on connections narrow that: one on
 * metadata hides the calls of a connection that is gone, because nobody knows its metadata any more.
 */
function readableCalls({ store }: RecordsDeps, context: RequestContext): (call: RecordedCall) => Promise<boolean> {
  const { caller, directory } = context
  const isEverybodys = caller.operator && caller.organizationId === undefined

  async function managed(name: string): Promise<boolean> {
    const namespace = await directory.namespace(name)
    if (namespace === undefined || !(await canAccessNamespace(caller, namespace, directory))) return false
    return managesNamespace(caller, namespace, directory)
  }

  async function allowed(namespace: string, connectionId: string): Promise<boolean> {
    const access = { namespace, resource: 'connections', operation: 'read' } as const
    if (!decide(caller.blocks, { ...access, metadata: 'narrowed' }).allowed) return false
    if (caller.metadataFingerprint === '') return true
    const found = await findConnection(store, namespace, connectionId)
    if (found === undefined) return false
    return decide(caller.blocks, { ...access, metadata: { connectionId, metadata: found.connection.metadata } }).allowed
  }

  /** The lines of a page are of few namespaces and connections. */
  const isManaged = new Map<string, Promise<boolean>>()
  const isAllowed = new Map<string, Promise<boolean>>()
  return async ({ userId, namespace = '', connectionId = '' }) => {
    const isOwn = caller.organizationId === undefined && userId === caller.userId
    if (!isOwn && !isEverybodys && !(await isManaged.getOrInsertComputed(namespace, managed))) return false
    if (caller.blocks.length === 0) return true
    return isAllowed.getOrInsertComputed(`${namespace}/${connectionId}`, () => allowed(namespace, connectionId))
  }
}
