/** Calls of the last hour by the minute, and how long they took. Read again each minute while somebody looks. */

import { useMemo } from 'preact/hooks'
import type { CallSeries } from '../../model/recorded-call.ts'
import { useEveryMinute, useResource } from '../resource.ts'
import { Chart, type Line } from './chart.tsx'

const sum = (values: Line['values']) => values.reduce<number>((all, one) => all + (one ?? 0), 0)
/** That of the last minute, which is not over yet, counts only where there is no other. */
const lastWhole = (all: Line['values']) => all.slice(0, -1).findLast((one) => one !== null) ?? all.at(-1) ?? null

/** `wanted`: filters of the interface, each beginning with `&`. */
export function CallCharts({ wanted = '' }: { readonly wanted?: string }) {
  const series = useResource<CallSeries>(`/calls/series?step=60${wanted}`)
  useEveryMinute(series)
  const { data, error } = series
  const { times, charts } = useMemo(() => {
    const steps = data?.steps ?? []
    const line = (label: Exclude<keyof (typeof steps)[number], 'at'>, color: string, dash: number[]): Line => {
      return { label, color, dash, values: steps.map((step) => step[label]) }
    }
    return {
      times: steps.map(({ at }) => Date.parse(at) / 1000),
      charts: [
        {
          ...{ title: 'Calls a minute', unit: 'calls', rest: { words: 'in the last hour', of: sum } },
          lines: [line('ok', '--accent', []), line('refused', '--attention', [6, 3]), line('failed', '--down', [2, 2])],
        },
        {
          ...{ title: 'Time of a call', unit: 'ms', rest: { words: 'in the last minute with calls', of: lastWhole } },
          lines: [line('p50', '--accent', []), line('p95', '--attention', [6, 3]), line('p99', '--muted', [2, 2])],
        },
      ],
    }
  }, [data])
  if (error !== undefined) return <p class="muted">Calls over time are not known: {error.message}</p>
  const empty = data === undefined ? '' : 'No call in the last hour.'
  return (
    <>
      <div class="charts">
        {charts.map((chart) => (
          <Chart key={chart.title} {...chart} times={times} empty={empty} />
        ))}
      </div>
      {data?.stopped === true && <p class="muted">There are more calls than were counted.</p>}
    </>
  )
}
