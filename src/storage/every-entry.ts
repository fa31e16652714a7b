/**
 * Reads all entries or keys under a prefix, a page at a time. Between pages others have their turn, which reads of a
 * local store do not give them.
 */

import { nextTurn } from '../next-turn.ts'
import { prefixRange } from './keys.ts'
import type { Entry, Key, Store } from './store.ts'

interface Slices {
  readonly isOver: boolean
  next(): Promise<void>
}

/** In key order. Each page is a snapshot of its own. `slices`: those of a request; left out, others go first each time. */
export async function* everyEntry(
  store: Pick<Store, 'range'>,
  prefix: Key,
  perRead: number,
  slices: Slices = alwaysOver,
): AsyncGenerator<Entry> {
  let { gte, lt } = prefixRange(prefix)
  for (let more = true; more; ) {
    const page = await store.range({ gte, lt, limit: perRead })
    yield* page.entries
    gte = after(page.entries.at(-1)?.key ?? gte)
    more = page.more
    if (more && slices.isOver) await slices.next()
  }
}

/** The same without the values. */
export async function* everyKey(
  store: Pick<Store, 'keys'>,
  prefix: Key,
  perRead: number,
  slices: Slices = alwaysOver,
): AsyncGenerator<Key> {
  let { gte, lt } = prefixRange(prefix)
  for (let more = true; more; ) {
    const page = await store.keys({ gte, lt, limit: perRead })
    yield* page.keys
    gte = after(page.keys.at(-1) ?? gte)
    more = page.more
    if (more && slices.isOver) await slices.next()
  }
}

/** The first key after this one. */
const after = (key: Key): Key => Buffer.concat([key, Buffer.of(0)])

/** Others go first between any two pages. */
const alwaysOver: Slices = { isOver: true, next: nextTurn }
