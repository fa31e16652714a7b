/** Recorded calls, for what is made of all of them. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { type CallFilter, matchesCall, type RecordedCall } from '../../ops/call-filter.ts'
import { fieldsOf, linesBack } from './page-back.ts'
import { type RecordsDeps, readableCalls } from './readable-calls.ts'

/** Calls before they are read; `stopped` is known when they were. */
export interface RecentCalls {
  /** In batches, the newest first. */
  readonly lines: AsyncGenerator<readonly RecordedCall[]>
  /** Whether there are more lines than one request looks at. */
  stopped: boolean
}

/** The calls of this kind that the caller may read; none where calls are not recorded. Rejects as `Slices.next`. */
export function recentCalls(
  deps: RecordsDeps,
  context: RequestContext,
  wanted: CallFilter & { readonly since: number },
): RecentCalls {
  const found: RecentCalls = { lines: batches(), stopped: false }
  async function* batches(): AsyncGenerator<readonly RecordedCall[]> {
    const matches = matchesCall(wanted)
    const mayRead = readableCalls(deps, context)
    const back = linesBack(context.request, deps.callsPath)
    for await (const lines of back.lines) {
      const calls = lines.map(({ text }) => (fieldsOf(text) ?? {}) as RecordedCall)
      const read: RecordedCall[] = []
      for (const call of calls) if (call.event === 'call' && matches(call) && (await mayRead(call))) read.push(call)
      yield read
      // Lines are in the order of their time, but for a few of one moment.
      if (calls.length > 0 && calls.every(({ time = '' }) => Date.parse(time) < wanted.since)) return
    }
    found.stopped = back.stopped
  }
  return found
}
