/** Numbers over time: drawn by uPlot, which is loaded when a chart is first looked at, and the same as a table. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'

export interface Line {
  readonly label: string
  /** A custom property: `--accent`. */
  readonly color: string
  /** Lengths of dashes and gaps in pixels; none is a whole line. */
  readonly dash: readonly number[]
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly title: string
  readonly unit: string
  /** Seconds since 1970, each `step` after the one before. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** The numbers beside the names of lines while nobody points at a time: in the words of `rest`. */
  readonly rest: { readonly words: string; readonly of: (values: Line['values']) => number | null }
  /** Said instead of an empty drawing. */
  readonly empty: string
}

/** Pixels. The place is kept while it is loaded. */
const height = 160
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const dark = matchMedia('(prefers-color-scheme: dark)')

/** A long time in seconds: its milliseconds would not fit. */
const inWords = (at: number, unit: string) => (unit === 'ms' && at >= 1000 ? `${at / 1000} s` : `${at} ${unit}`)

const shown = (value: number | null | undefined) => (value === null || value === undefined ? '–' : String(value))

export function Chart({ title, unit, times, lines, rest, empty }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const [pointed, setPointed] = useState<number | null>(null)
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null || value === 0))
  useEffect(() => {
    const element = place.current
    if (element === null || isEmpty) return
    const left = new AbortController()
    let plot: uPlot | undefined
    const draw = async () => {
      const { default: Plot } = await import('uplot')
      if (left.signal.aborted) return
      plot?.destroy()
      plot = new Plot(optionsOf(element, unit, lines, setPointed), [
        [...times],
        ...lines.map(({ values }) => [...values]),
      ])
      element.append(plot.root)
    }
    void draw()
    dark.addEventListener('change', draw, { signal: left.signal })
    const size = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    size.observe(element)
    return () => {
      left.abort()
      size.disconnect()
      plot?.destroy()
    }
  }, [times, lines])
  const numberOf = (values: Line['values']) => (pointed === null ? rest.of(values) : values[pointed])
  return (
    <figure data-part="chart">
      <figcaption>
        <span class="title">
          <b>{title}</b>{' '}
          <span class="muted">{pointed === null ? rest.words : clock.format((times[pointed] ?? 0) * 1000)}</span>
        </span>
        {lines.map(({ label, color, dash, values }) => (
          <span key={label}>
            <svg width="24" height="8" aria-hidden="true" style={{ stroke: `var(${color})` }}>
              <line x1="0" y1="4" x2="24" y2="4" stroke-width="2" stroke-dasharray={dash.join(' ')} />
            </svg>{' '}
            {label} <span class="value">{shown(numberOf(values))}</span>
          </span>
        ))}
      </figcaption>
      <div ref={place} class="plot" aria-hidden="true">
        {isEmpty && <p class="muted">{empty}</p>}
      </div>
      <details data-part="chart-table">
        <summary>{title} as a table</summary>
        <table>
          <thead>
            <tr>
              <th>Time</th>
              {lines.map(({ label }) => (
                <th key={label} class="number">
                  {label} ({unit})
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, index) => (
              <tr key={time}>
                <td>{clock.format(time * 1000)}</td>
                {lines.map(({ label, values }) => (
                  <td key={label} class="number">
                    {shown(values[index])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}

function optionsOf(
  element: HTMLElement,
  unit: string,
  lines: readonly Line[],
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name)
  const axis = { stroke: color('--muted'), font: '12px system-ui', grid: { stroke: color('--line'), width: 1 } }
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.1] } },
    axes: [
      { ...axis, values: (_, splits) => splits.map((at) => clock.format(at * 1000)) },
      {
        ...axis,
        size: 64,
        values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? inWords(at, unit) : '')),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        ...{ label: line.label, stroke: color(line.color), width: 2, dash: [...line.dash], spanGaps: false },
        points: { show: line.values.filter((one) => one !== null).length < 3 },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  }
}
