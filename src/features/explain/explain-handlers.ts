/** `POST /tokens/explain`, `lint`, `coverage`, `diff` and `suggest` (contract, 21). */

import type { Static, TSchema } from '@sinclair/typebox'
import type { RequestContext } from '../../auth/authorizer.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { ordinaryBody, readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { rpcDepthMax } from '../../limits.ts'
import {
  CoverageRequest,
  DiffRequest,
  ExplainRequest,
  type Explanation,
  LintRequest,
  SuggestRequest,
} from '../../model/explain.ts'
import { namedBy } from '../../model/mcp.ts'
import { validatorOf } from '../../schema/check.ts'
import { coverTools } from './coverage.ts'
import { diffPolicies } from './diff.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { explainRequest } from './explanation.ts'
import { lintSubject } from './findings.ts'
import { notesOn } from './notes.ts'
import { readSubject } from './subject.ts'
import { suggestPolicy } from './suggest.ts'

export const explainHandlers = handlersOf({
  explainToken: answering(ExplainRequest, explainToken),
  lintPolicy: answering(LintRequest, lintSubject),
  coverTools: answering(CoverageRequest, coverTools),
  diffPolicies: answering(DiffRequest, diffPolicies),
  suggestPolicy: answering(SuggestRequest, suggestPolicy),
})

/** The part that all share: it reads a body of this shape, and answers with the result, which nobody may keep. */
function answering<T extends TSchema>(
  shape: T,
  find: (deps: ExplainDeps, context: RequestContext, body: Static<T>) => Promise<object>,
) {
  const validator = validatorOf(shape)
  return async (deps: ExplainDeps, request: Request): Promise<Response> => {
    const { authorizer } = deps
    await authorizer.authenticate(request) // 401, 429
    refuseQuery(request.url) // 400
    const body = await readOptionalBody(request, validator, { ...ordinaryBody, depthMax: rpcDepthMax }) // 400
    // The client may have sent the body slowly: a credential that was revoked in the meantime reads nothing.
    const context = await authorizer.authenticate(request, true) // 401
    const found = await whileAllowed(deps, context, (now) => find(deps, now, body)) // 401
    return wholeResponse(request, JSON.stringify(found), { headers: noStoreJson })
  }
}

/** Throws as `readSubject` and `lookAt`. */
async function explainToken(
  deps: ExplainDeps,
  context: RequestContext,
  { request: described = {}, ...given }: ExplainRequest,
): Promise<Explanation> {
  const subject = await readSubject(deps, context, given) // 400, 403, 404
  const { looked, explanation } = await explainRequest(deps, context, subject, described) // 400, 429
  const tool = described.tool ?? calledBy(described.message)
  return { ...explanation, notes: await notesOn(deps, context, looked, tool) }
}

function calledBy(message: unknown): string | undefined {
  const { method, params } = (message ?? {}) as { method?: unknown; params?: unknown }
  const name = method === 'tools/call' ? namedBy(method, params) : undefined
  return typeof name === 'string' ? name : undefined
}
