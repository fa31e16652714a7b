/** `GET /audit` and `GET /audit/verification`: the audit log, for operators. */

import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { requireOperator } from '../../auth/authorizer.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { handlersOf } from '../../http/handler.ts'
import { readQuery, readWord } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { problemsShownMax } from '../../limits.ts'
import { auditEvents } from '../../model/audit-event.ts'
import type { AuditVerification } from '../../model/recorded-call.ts'
import { AuditVerifier, openEndText } from '../../ops/audit-verifier.ts'
import { fieldsOf, pageBack, readTime } from './page-back.ts'
import type { RecordsDeps } from './readable-calls.ts'

export const auditHandlers = handlersOf({ listAudit, verifyAudit })

async function listAudit(deps: RecordsDeps, request: Request): Promise<Response> {
  requireOperator(await deps.authorizer.authenticate(request)) // 401, 429, 403
  const query = readQuery(request.url, ['since', 'until', 'event', 'user', 'limit', 'cursor']) // 400
  const since = readTime(query, 'since') ?? Number.NEGATIVE_INFINITY // 400
  const until = readTime(query, 'until') ?? Number.POSITIVE_INFINITY // 400
  const event = readWord(query, 'event', auditEvents) // 400
  const user = query.get('user')
  const about = { path: deps.auditPath, query, key: deps.cursorKey }
  const { items, nextCursor, stopped } = await pageBack(request, about, (text) => {
    const entry = fieldsOf(text)
    const time = Date.parse(String(entry?.['time']))
    const isWanted =
      !(time < since || time > until) &&
      (event === undefined || entry?.['event'] === event) &&
      (user === undefined || entry?.['userId'] === user)
    return isWanted ? entry : undefined
  }) // 400, 429
  requireOperator(await deps.authorizer.authenticate(request, true)) // 401, 403, as for calls
  return wholeResponse(request, JSON.stringify({ entries: items, nextCursor, stopped }), { headers: noStoreJson })
}

async function verifyAudit({ authorizer, auditPath }: RecordsDeps, request: Request): Promise<Response> {
  requireOperator(await authorizer.authenticate(request)) // 401, 429, 403
  const hash = readQuery(request.url, ['hash']).get('hash') // 400
  if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash))
    throw invalidRequest('hash: must be 64 hexadecimal digits (0-9, a-f)')
  const verifier = new AuditVerifier({ hash, isOneLog: true })
  const slices = allowanceOf(request).slices()
  let number = 0
  for await (const line of createInterface({ input: createReadStream(auditPath), crlfDelay: Infinity })) {
    number += 1
    verifier.push(line, `line ${number}`)
    if (slices.isOver) await slices.next()
  }
  const { logs, problems, truncatedLines } = verifier.report()
  const isMissing = hash !== undefined && !logs.some(({ hasHash }) => hasHash)
  // The caller vouches for a log that has the hash: what is missing at its end came after that.
  const openEnds = logs.flatMap(({ openEnd, hasHash }) => (openEnd === undefined || hasHash ? [] : [openEnd]))
  const all = [
    ...problems,
    ...openEnds.map((openEnd) => `${openEnd}: ${openEndText}`),
    ...(isMissing ? ['no entry has this hash: the log was cut off or rewritten, or an earlier file has it'] : []),
  ]
  const verification: AuditVerification = {
    ok: all.length === 0,
    problems: all.slice(0, problemsShownMax),
    truncatedLines: truncatedLines.slice(0, problemsShownMax),
    logs: logs.map(({ replica = null, entries, follows, last }) => {
      return { replica, entries, first: follows.seq + 1, last: last.seq, hash: last.hash }
    }),
  }
  requireOperator(await authorizer.authenticate(request, true)) // 401, 403
  return wholeResponse(request, JSON.stringify(verification), { headers: noStoreJson })
}
