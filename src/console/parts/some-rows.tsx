/** Rows of a list that a room has whole: some at first, and as many more with each press. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Action } from './parts.tsx'

/** Rows that are shown at first. Past it: as many more with each press. */
export const rowsMax = 150

export function SomeRows<T>({ items, row }: { readonly items: readonly T[]; row(item: T): ComponentChildren }) {
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
