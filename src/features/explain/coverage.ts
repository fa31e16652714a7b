/** `POST /tokens/coverage`: the verdict on each tool of each connection (contract, 21.4). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { openText, sealText } from '../../auth/secrets.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import {
  type Coverage,
  type CoverageRequest,
  type CoveredConnection,
  type CoveredTool,
  coveredConnectionsDefault,
  type Verdict,
} from '../../model/explain.ts'
import { explainingConstraints, explainingRules } from '../../policy/explain.ts'
import { anyToolCall, type LookedAt, lookAt, toolCall } from './described-request.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { decidingOf } from './explanation.ts'
import { Examined, everySeen, type SeenConnection } from './seen-tools.ts'
import { type Explained, readSubject } from './subject.ts'

/** Throws as `readSubject`, and `invalid_request` for a cursor of another question. */
export async function coverTools(
  deps: ExplainDeps,
  context: RequestContext,
  { namespace, limit = coveredConnectionsDefault, cursor, ...given }: CoverageRequest,
): Promise<Coverage> {
  const subject = await readSubject(deps, context, given) // 400, 403, 404
  const { keyId, token } = context.caller
  const digest = Bun.SHA256.hash(JSON.stringify(given), 'hex')
  const binding = JSON.stringify(['coverage', keyId, token?.jti, digest, namespace])
  const from = cursor === undefined ? undefined : readCursor(openText(deps.cursorKey, cursor, binding))
  const examined = new Examined(deps.clock)
  const page: CoveredConnection[] = []
  const sum = { connections: { some: 0, total: 0 }, tools: { allow: 0, depends: 0, refuse: 0, total: 0 }, unknown: 0 }
  let next: ConnectionRef | undefined
  let last: ConnectionRef | undefined
  for await (const seen of everySeen(deps, context, examined, { namespace, from })) {
    const isOnPage = page.length < limit
    if (!isOnPage) next ??= seen
    if (!isOnPage && from !== undefined) break
    const request = { namespace: seen.namespace, connection: seen.connectionId, operation: 'execute' } as const
    const looked = await lookAt(deps, context, subject, request)
    const one = await allowanceOf(context.request).run(covering(subject, looked, seen, examined)) // 429
    // It ended in the middle of this one, which is then the first of the next page.
    if (one.tools !== null && one.tools.length < (seen.tools?.length ?? 0) && page.length > 0) {
      next ??= seen
      break
    }
    if (isOnPage) page.push(one)
    last = seen
    sum.connections.total += 1
    if (one.verdict !== 'refuse') sum.connections.some += 1
    if (one.tools === null) sum.unknown += 1
    for (const { verdict } of one.tools ?? []) {
      sum.tools[verdict] += 1
      sum.tools.total += 1
    }
  }
  // It ended early: the next page begins behind what was examined.
  if (next === undefined && !examined.isComplete && last !== undefined)
    next = { ...last, connectionId: `${last.connectionId}\0` }
  const nextCursor = next && sealText(deps.cursorKey, JSON.stringify([next.namespace, next.connectionId]), binding)
  return {
    summary: from === undefined ? { ...sum, complete: examined.isComplete } : null,
    connections: page,
    nextCursor: nextCursor ?? null,
  }
}

function readCursor(text: string | undefined): ConnectionRef {
  if (text === undefined) throw invalidRequest('cursor: not valid for this question; start again without it')
  const [namespace, connectionId] = JSON.parse(text) as [string, string]
  return { namespace, connectionId }
}

const best: readonly Verdict[] = ['allow', 'depends', 'refuse']

/** Cost of a tool beside that of its rules, in the unit of `sliceCost`. */
const toolCost = 200

function* covering(
  { caller: { blocks } }: Explained,
  { request, outside }: LookedAt,
  { namespace, connectionId, tools }: SeenConnection,
  examined: Examined,
): Work<CoveredConnection> {
  const decide = (constraints: Parameters<typeof decidingOf>[2]) => decidingOf(true, outside, constraints)
  const ofAny = yield* explainingConstraints(blocks, { ...request, message: anyToolCall })
  const whatever = decide(ofAny)
  const refusal = whatever?.verdict === 'refuse' ? whatever : undefined
  const others = ofAny.filter(({ field }) => field !== 'rpcReqMatch')
  const shown: CoveredTool[] = []
  for (const name of tools ?? []) {
    if (!examined.hasTime()) break
    yield toolCost
    const rules = refusal === undefined ? yield* explainingRules(blocks, { ...request, message: toolCall(name) }) : []
    const { verdict, place, missing } = refusal ?? decide([...others, ...rules]) ?? allowed
    shown.push({ name, verdict, place: verdict === 'allow' ? null : place, missing })
  }
  const verdicts = new Set(shown.map(({ verdict }) => verdict))
  const verdict = refusal?.verdict ?? best.find((one) => verdicts.has(one)) ?? whatever?.verdict ?? 'allow'
  const place = refusal?.place ?? null
  return { namespace, connectionId, verdict, place, tools: tools === undefined ? null : shown }
}

const allowed = { verdict: 'allow', place: '', missing: [] as string[] } as const
