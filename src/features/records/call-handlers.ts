/** `GET /calls` and `GET /calls/series`: the record of calls, as far as the caller may see it. */

import { whileAllowed } from '../../auth/while-allowed.ts'
import { invalidRequest } from '../../errors.ts'
import { handlersOf } from '../../http/handler.ts'
import { readInteger, readQuery, readWord } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { callEntrances, callOutcomes } from '../../model/recorded-call.ts'
import { type CallFilter, matchesCall, type RecordedCall } from '../../ops/call-filter.ts'
import { seriesOf } from './call-series.ts'
import { fieldsOf, pageBack, readTime } from './page-back.ts'
import { type RecordsDeps, readableCalls, shownCall } from './readable-calls.ts'
import { RecentCalls } from './recent-calls.ts'

export const callHandlers = handlersOf({ listCalls, countCalls })

/** Contract 18.5: steps of a series. Past it: 400. */
const seriesStepsMax = 500

const freeFilters = ['namespace', 'connection', 'tool', 'user', 'token'] as const
const filters = [...freeFilters, 'outcome', 'via'] as const
const parameters = [...filters, 'since', 'until', 'limit', 'cursor']

/** Throws `invalid_request`. */
function filtersIn(query: ReadonlyMap<string, string>): CallFilter {
  return {
    ...Object.fromEntries(freeFilters.map((name) => [name, query.get(name)])),
    outcome: readWord(query, 'outcome', callOutcomes),
    via: readWord(query, 'via', callEntrances),
  }
}

async function listCalls(deps: RecordsDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  const query = readQuery(request.url, parameters) // 400
  const matches = matchesCall({
    ...filtersIn(query), // 400
    since: readTime(query, 'since'), // 400
    until: readTime(query, 'until'), // 400
  })
  const about = { path: deps.callsPath, query, key: deps.cursorKey }
  const { items, nextCursor, stopped } = await whileAllowed(deps, context, (now) => {
    const mayRead = readableCalls(deps, now)
    return pageBack(request, about, async (text) => {
      const call = fieldsOf(text) as RecordedCall | undefined
      if (call?.event !== 'call' || !matches(call) || !(await mayRead(call))) return undefined
      return shownCall(now, call)
    })
  }) // 401, 400, 429
  if (request.headers.get('accept') !== ndjson)
    return wholeResponse(request, JSON.stringify({ calls: items, nextCursor, stopped }))
  const next = new URL(request.url)
  next.searchParams.set('cursor', nextCursor ?? '')
  const link = nextCursor === null ? {} : { link: `<${next.pathname}${next.search}>; rel="next"` }
  const lines = items.map((item) => `${JSON.stringify(item)}\n`).join('')
  return wholeResponse(request, lines, { headers: { ...noStoreJson, 'content-type': ndjson, ...link } })
}

const ndjson = 'application/x-ndjson'

async function countCalls(deps: RecordsDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  const query = readQuery(request.url, [...filters, 'since', 'until', 'step']) // 400
  const until = readTime(query, 'until') ?? deps.clock.now() // 400
  const since = readTime(query, 'since') ?? until - 3600 * 1000 // 400
  const step = readInteger(query, 'step', { least: 1, most: 24 * 3600, otherwise: 60 }) * 1000 // 400
  const count = Math.ceil((until - since) / step)
  if (!(count >= 1 && count <= seriesStepsMax))
    throw invalidRequest(`step: must divide the time between since and until into 1 to ${seriesStepsMax} steps`)
  const filter = { ...filtersIn(query), since, until } // 400
  const series = await whileAllowed(deps, context, (now) =>
    seriesOf(new RecentCalls(deps, now, filter), { since, step, count }),
  ) // 401, 429
  return wholeResponse(request, JSON.stringify(series), { headers: noStoreJson })
}
