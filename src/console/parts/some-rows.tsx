/** Rows of a list that a room has whole: some at first, and as many more with each press. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Action } from './parts.tsx'

/** Rows that are shown at first. Past it: as many more with each press. */
export const rowsMax = 150

interface SomeRowsProps<T> {
  readonly items: readonly T[]
  readonly row: (item: T) => ComponentChildren
}

export function SomeRows<T>({ items, row }: SomeRowsProps<T>) {
  const [shown, setShown] = useState(rowsMax)
  return (
    <>
      {items.slice(0, shown).map(row)}
      {items.length > shown && (
        <li>
          <Action name="more" onClick={() => setShown(shown + rowsMax)} label={`Show more of ${items.length}`} />
        </li>
      )}
    </>
  )
}
