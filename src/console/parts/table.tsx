/** A list as a table, of which only the rows around what is looked at are in the document. */

import { observeWindowOffset, observeWindowRect, Virtualizer, windowScroll } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { Pages } from '../pages.ts'
import { Action, Busy } from './parts.tsx'
import { Problem } from './room.tsx'

export interface Column<T> {
  readonly title: string
  readonly cell: (item: T) => ComponentChildren
  /** Without one it takes what is left. */
  readonly width?: 'number' | 'narrow' | 'medium' | 'wide'
  /** One line, cut where it is wide; the whole is where the row leads. */
  readonly isClipped?: boolean
}

interface TableProps<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly pages: Pages<T>
  /** The hooks of a row: `data-id` and others. */
  readonly hooks: (item: T) => Readonly<Record<string, string>> & { readonly 'data-id': string }
  /** Rows that came while somebody looked, above those of the list. */
  readonly before?: readonly T[]
}

/** Pixels of a row until it is measured. */
const rowHeight = 37
/** Rows above and below the window. */
const overscan = 20

/** `count` rows that begin `margin` pixels below the beginning of the document. */
function useVirtualizer(count: number, margin: number) {
  const [, paint] = useReducer((before: number) => before + 1, 0)
  const options = {
    ...{ count, overscan, scrollMargin: margin, estimateSize: () => rowHeight },
    ...{ getScrollElement: () => window, scrollToFn: windowScroll },
    ...{ observeElementRect: observeWindowRect, observeElementOffset: observeWindowOffset },
    ...{ initialOffset: () => window.scrollY, initialRect: { width: innerWidth, height: innerHeight } },
    onChange: () => paint(0),
  }
  const [virtualizer] = useState(() => new Virtualizer<Window, HTMLTableRowElement>(options))
  virtualizer.setOptions(options)
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  return virtualizer
}

export function Table<T>({ label, columns, pages, hooks, before = [] }: TableProps<T>) {
  const { length, isWhole, failure } = pages
  const above = useRef<HTMLTableRowElement>(null)
  const [margin, setMargin] = useState(0)
  // One row more stands for those that have not been read.
  const virtualizer = useVirtualizer(length + (isWhole ? 0 : 1), margin)
  const shown = virtualizer.getVirtualItems()
  const [first, last] = [shown[0], shown.at(-1)]
  useEffect(() => {
    if (first !== undefined && last !== undefined) pages.want(first.index, last.index)
  })
  useLayoutEffect(() => {
    const top = above.current?.getBoundingClientRect().top ?? 0
    setMargin(Math.round(top + window.scrollY))
  })
  const isEnd = isWhole && (last === undefined || last.index === length - 1)
  const row = (item: T, index: number, virtual?: number) => (
    <tr
      key={hooks(item)['data-id']}
      {...hooks(item)}
      aria-rowindex={index + 2}
      data-index={virtual}
      ref={virtual === undefined ? null : (virtualizer.measureElement as (element: HTMLTableRowElement | null) => void)}
    >
      {columns.map(({ title, width, isClipped, cell }) => (
        <td key={title} class={width}>
          {isClipped === true ? <div class="clipped">{cell(item)}</div> : cell(item)}
        </td>
      ))}
    </tr>
  )
  /** Stands for rows that are not in the document. */
  const space = (key: string, height: number, at: typeof above | null = null) => (
    <tr key={key} ref={at} class="space">
      <td colSpan={columns.length} style={{ height: `${height}px` }} />
    </tr>
  )
  return (
    <>
      <table class="long" aria-label={label} aria-rowcount={isWhole ? before.length + length + 1 : -1}>
        <thead>
          <tr>
            {columns.map(({ title, width }) => (
              <th key={title} scope="col" class={width}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody data-part="rows" data-end={isEnd}>
          {before.map((item, index) => row(item, index))}
          {space('above', first === undefined ? 0 : first.start - margin, above)}
          {shown.map(({ index }) => {
            const item = pages.at(index)
            if (item !== undefined) return row(item, before.length + index, index)
            return (
              <tr key={`absent ${index}`} data-index={index}>
                <td colSpan={columns.length} class="muted">
                  {index === length && failure === undefined ? <Busy /> : '…'}
                </td>
              </tr>
            )
          })}
          {space('below', virtualizer.getTotalSize() - (last === undefined ? 0 : last.end - margin))}
        </tbody>
      </table>
      {failure !== undefined && <Problem error={failure} again={pages.again} />}
    </>
  )
}

/** Says that news of a list were missed, and offers to read it again. `news`: in words. */
export function Gap({ news, pages }: { readonly news: string; readonly pages: Pages<unknown> }) {
  return pages.hasGap ? (
    <p role="status">
      Some {news} may be missing here. <Action name="retry" onClick={pages.again} label="Read again" />
    </p>
  ) : null
}
