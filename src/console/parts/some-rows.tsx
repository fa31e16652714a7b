/** A list that a room has whole: the document holds a part of it, and another one with each press. */

import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Action } from './parts.tsx'

/** Rows of a part. */
const rowsMax = 150

interface SomeRowsProps<T> {
  readonly items: readonly T[]
  readonly part?: string
  readonly isPairs?: boolean
  row(item: T): ComponentChildren
}

export function SomeRows<T>({ items, row, part, isPairs }: SomeRowsProps<T>) {
  const [from, setFrom] = useState(0)
  const list = useRef<HTMLUListElement>(null)
  // Items may have gone since.
  const first = from < items.length ? from : 0
  const end = Math.min(first + rowsMax, items.length)
  const show = (next: number) => {
    setFrom(next)
    list.current?.scrollIntoView()
  }
  return (
    <>
      <ul ref={list} class={isPairs === true ? 'rows pairs' : 'rows'} data-part={part} data-end={end === items.length}>
        {items.slice(first, end).map(row)}
      </ul>
      {items.length > rowsMax && (
        <p>
          {first + 1} to {end} of {items.length}{' '}
          {first > 0 && <Action name="more" for="before" onClick={() => show(first - rowsMax)} label="Earlier ones" />}{' '}
          {end < items.length && <Action name="more" onClick={() => show(end)} label="Further ones" />}
        </p>
      )}
    </>
  )
}
