/** How many calls ended how, in equal steps of time (contract, 18.5). */

import type { CallSeries } from '../../model/recorded-call.ts'
import type { RecentCalls } from './recent-calls.ts'

/** `since` and `step` in milliseconds. Rejects as `RecentCalls.lines`. */
export async function seriesOf(
  record: RecentCalls,
  { since, step, count }: { readonly since: number; readonly step: number; readonly count: number },
): Promise<CallSeries> {
  const steps = Array.from({ length: count }, () => ({ ok: 0, failed: 0, refused: 0, ms: [] as number[] }))
  for await (const lines of record.lines)
    for (const { time = '', outcome, ms = 0 } of lines) {
      const one = steps[Math.min(count - 1, Math.floor((Date.parse(time) - since) / step))]
      if (one === undefined) continue
      one[outcome === 'ok' || outcome === 'refused' ? outcome : 'failed'] += 1
      if (outcome !== 'refused') one.ms.push(ms)
    }
  return {
    steps: steps.map(({ ms, ...counts }, index) => {
      // Without a function that compares, a hundred thousand take five milliseconds.
      const sorted = Float64Array.from(ms).sort()
      const part = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? null
      const at = new Date(since + index * step).toISOString()
      return { at, ...counts, p50: part(0.5), p95: part(0.95), p99: part(0.99) }
    }),
    stopped: record.stopped,
  }
}
