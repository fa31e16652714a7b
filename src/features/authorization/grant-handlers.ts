/** Grants over HTTP: a user lists and ends the own ones, and an operator everybody's. */

import { auditedCaller, isLive } from '../../auth/authenticate.ts'
import { type RequestContext, requireApiKey, requireOperator } from '../../auth/authorizer.ts'
import { endOf, findGrant, type Grant, type GrantEnd, listGrants, shownGrant } from '../../auth/grants.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { answerWhileAllowed } from '../../auth/while-allowed.ts'
import { secondsOf } from '../../clock.ts'
import { notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { type Answer, handlersOf } from '../../http/handler.ts'
import { pageOf, paginationOf, readPageNumber } from '../../http/numbered-pages.ts'
import { lastNameInPath } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { doneResponse } from '../../http/respond.ts'
import { listPageMax } from '../../limits.ts'
import type { GrantPage } from '../../model/organization.ts'
import { keyOf } from '../../storage/keys.ts'

export const grantHandlers = handlersOf({
  listOwnGrants: listFor(userOf),
  deleteOwnGrant: endFor(userOf, 'revoked by its user'),
  listAllGrants: listFor(requireOperator),
  deleteAnyGrant: endFor(requireOperator, 'revoked by operator'),
})

/** The user whose grants a request is about; undefined for everybody's. Throws 403. */
type UserOf = (context: RequestContext) => string | undefined

function userOf(context: RequestContext): string {
  requireApiKey(context, 'Grants')
  return context.caller.userId
}

function listFor(user: UserOf): Answer<SharedParts> {
  return answerWhileAllowed((deps, now) => grantsOf(deps, now, user)) // 403, 400, 429
}

async function grantsOf({ store, clock }: SharedParts, context: RequestContext, user: UserOf): Promise<GrantPage> {
  const { request } = context
  const own = user(context) // 403
  const query = readQuery(request.url, ['page', 'pageSize', ...(own === undefined ? ['userId'] : [])]) // 400
  const page = readPageNumber(query, { sizeDefault: listPageMax, sizeMax: listPageMax }) // 400
  const wanted = own ?? query.get('userId')
  const live: Grant[] = []
  const listed = { userId: wanted, allowance: allowanceOf(request) }
  // A grant ends when the API key of the user who allowed it is revoked.
  for (const grant of await listGrants(store, secondsOf(clock), listed))
    if (isLive(await context.directory.apiKey(grant.keyId))) live.push(grant)
  return { grants: pageOf(live, page).map(shownGrant), pagination: paginationOf(page, live.length) }
}

function endFor(user: UserOf, reason: GrantEnd): Answer<SharedParts> {
  return async ({ store, audit, clock, writes }, request) => {
    const { caller, allowed: own, change } = await writes.begin(request, user, 'removal') // 401, 429, 403, 400
    const grantId = lastNameInPath(request.url)
    await change(async () => {
      const nowSeconds = secondsOf(clock)
      const { grant, bytes } = (await findGrant(store, grantId, nowSeconds)) ?? {}
      if (grant === undefined || (own !== undefined && grant.userId !== own)) throw notFound('Grant not found')
      const checks = [{ key: keyOf('grant', grantId), value: bytes as Uint8Array }]
      return { write: { ...endOf(grant, nowSeconds), checks }, result: undefined }
    })
    await audit.recordDone('grant.ended', { ...auditedCaller(caller), grantId, reason })
    return doneResponse()
  }
}
