/** `POST /tokens/explain` (contract, 21.2). */

import { allowanceOf } from '../../fairness/allowance.ts'
import { ordinaryBody, readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { rpcDepthMax } from '../../limits.ts'
import { ExplainRequest } from '../../model/explain.ts'
import { explainingConstraints } from '../../policy/explain.ts'
import { validatorOf } from '../../schema/check.ts'
import { lookAt } from './described-request.ts'
import type { ExplainDeps } from './explain-deps.ts'
import { explanationOf } from './explanation.ts'
import { notesOn } from './notes.ts'
import { readSubject } from './subject.ts'

export const explainHandlers = handlersOf({ explainToken })

const requestShape = validatorOf(ExplainRequest)

async function explainToken(deps: ExplainDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  refuseQuery(request.url) // 400
  const { request: described = {}, ...given } = await readOptionalBody(request, requestShape, {
    ...ordinaryBody,
    depthMax: rpcDepthMax,
  }) // 400
  const subject = await readSubject(deps, context, given) // 400, 403, 404
  const looked = await lookAt(deps, context, subject, described) // 400
  const { blocks } = subject.caller
  const constraints = await allowanceOf(request).run(explainingConstraints(blocks, looked.request)) // 429
  const notes = await notesOn(deps, context, looked, described.tool)
  return wholeResponse(
    request,
    JSON.stringify({ ...explanationOf({ ...subject, blocks }, looked, constraints), notes }),
    {
      headers: noStoreJson,
    },
  )
}
