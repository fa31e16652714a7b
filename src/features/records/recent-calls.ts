/** Recorded calls, for what is made of all of them. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { type CallFilter, matchesCall, type RecordedCall } from '../../ops/call-filter.ts'
import { fieldsOf, LinesBack } from './page-back.ts'
import { type RecordsDeps, readableCalls } from './readable-calls.ts'

interface Wanted extends CallFilter {
  readonly since: number
}

/** The calls of this kind that the caller may read; none where calls are not recorded. */
export class RecentCalls {
  /** In batches, the newest first. Rejects as `Slices.next`. */
  readonly lines: AsyncGenerator<readonly RecordedCall[]>
  /** When they were read: whether there are more lines than one request looks at. */
  stopped = false

  constructor(deps: RecordsDeps, context: RequestContext, wanted: Wanted) {
    this.lines = this.#batches(deps, context, wanted)
  }

  async *#batches(deps: RecordsDeps, context: RequestContext, wanted: Wanted): AsyncGenerator<readonly RecordedCall[]> {
    const matches = matchesCall(wanted)
    const mayRead = readableCalls(deps, context)
    const back = new LinesBack(context.request, deps.callsPath)
    for await (const lines of back.lines) {
      const calls = lines.map(({ text }) => (fieldsOf(text) ?? {}) as RecordedCall)
      const read: RecordedCall[] = []
      for (const call of calls) if (call.event === 'call' && matches(call) && (await mayRead(call))) read.push(call)
      yield read
      // Lines are in the order of their time, but for a few of one moment.
      if (calls.length > 0 && calls.every(({ time = '' }) => Date.parse(time) < wanted.since)) return
    }
    this.stopped = back.stopped
  }
}
