/** Everything that a caller reaches, at a glance (contract, 22.2). */

import { dirname } from 'node:path'
import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Overview } from '../../model/health.ts'
import { freeBytes } from '../../storage/free-space.ts'
import { version } from '../../version.ts'
import { everySeenBatch } from '../endpoint/seen-connections.ts'
import { RecentCalls } from '../records/recent-calls.ts'
import { type HealthDeps, healthOfAll, needsSomebody } from './stored-health.ts'

/** Contract 22.2: connections that an overview counts. Past it: the overview says that it is not complete. */
const countedMax = 2000
/** Contract 22.2: connections that need attention and that an overview lists. Past it: the overview only counts them. */
const attentionMax = 20
/** Connections that are read at once. */
const readAtOnce = 100
/** Ours: namespaces whose connections an overview counts. Past it: as for connections. */
const namespacesMax = 1000
/** The calls that are counted, in milliseconds before now. */
const callsMs = 3600 * 1000

/** Rejects as `Slices.next`. */
export async function overviewOf(deps: HealthDeps, context: RequestContext): Promise<Overview> {
  const { store, auditPath, hasSampleTraffic } = deps
  const { operator, token } = context.caller
  const isOperator = operator && token === undefined
  const problem = await store.health().then(
    () => undefined,
    (error: Error) => error.message,
  )
  const details = problem === undefined ? { freeBytes: freeBytes(dirname(auditPath)) } : { problem }
  return {
    ...(await connectionsOf(deps, context)),
    // The record may be on the disk that fails, too.
    calls: problem === undefined ? await callsOf(deps, context) : null,
    store: {
      ok: problem === undefined,
      ...(isOperator && { kind: store.isRemote === true ? 'postgresql' : 'embedded', ...details }),
    },
    version,
    ...(hasSampleTraffic && { sampleTraffic: true }),
  }
}

async function connectionsOf(
  deps: HealthDeps,
  context: RequestContext,
): Promise<Pick<Overview, 'connections' | 'attention'>> {
  const connections = { total: 0, ok: 0, attention: 0, down: 0, unknown: 0, off: 0, complete: true }
  const attention: Overview['attention'] = []
  const slices = allowanceOf(context.request).slices()
  for await (const refs of everySeenBatch(deps.store, context, { most: readAtOnce, namespacesMax })) {
    if (refs === 'more' || connections.total >= countedMax) {
      connections.complete = false
      break
    }
    const [first] = refs
    for (const one of await healthOfAll(deps, context, refs)) {
      connections.total += 1
      connections[one.level] += 1
      if (first !== undefined && needsSomebody(one) && attention.length < attentionMax)
        attention.push({ namespace: first.namespace, ...one })
    }
    if (slices.isOver) await slices.next()
  }
  return { connections, attention }
}

async function callsOf(deps: HealthDeps, context: RequestContext): Promise<Overview['calls']> {
  if (deps.callsPath === undefined) return null
  const since = deps.clock.now() - callsMs
  const calls = { ok: 0, failed: 0, refused: 0 }
  const record = new RecentCalls(deps, context, { since })
  for await (const lines of record.lines)
    for (const { outcome } of lines) calls[outcome === 'ok' || outcome === 'refused' ? outcome : 'failed'] += 1
  return { since: new Date(since).toISOString(), ...calls, complete: !record.stopped }
}
