/** Reads all under a prefix, a page at a time. Others have their turn between pages, also with a local store. */

import { nextTurn } from '../next-turn.ts'
import { prefixRange } from './keys.ts'
import { isSmall } from './record-kinds.ts'
import type { Entry, Key, Store } from './store.ts'

interface Slices {
  readonly isOver: boolean
  next(): Promise<void>
}

/** Keys, or entries of a small kind, that one read returns. Past it: the next read. */
export const smallPerRead = 1000
/** Entries of a kind that may be large. Past it: as for `smallPerRead`. */
const largePerRead = 100

/** In key order. Each page is a snapshot of its own. `slices`: those of a request; left out, others go first each time. */
export async function* everyEntry(
  store: Pick<Store, 'range'>,
  prefix: Key,
  slices: Slices = alwaysOver,
): AsyncGenerator<Entry> {
  let { gte, lt } = prefixRange(prefix)
  const limit = isSmall(prefix) ? smallPerRead : largePerRead
  for (let isMore = true; isMore; ) {
    const { entries, more } = await store.range({ gte, lt, limit })
    yield* entries
    gte = after(entries.at(-1)?.key ?? gte)
    isMore = more
    if (more && slices.isOver) await slices.next()
  }
}

/** The same without the values. */
export async function* everyKey(
  store: Pick<Store, 'keys'>,
  prefix: Key,
  slices: Slices = alwaysOver,
): AsyncGenerator<Key> {
  let { gte, lt } = prefixRange(prefix)
  for (let isMore = true; isMore; ) {
    const { keys, more } = await store.keys({ gte, lt, limit: smallPerRead })
    yield* keys
    gte = after(keys.at(-1) ?? gte)
    isMore = more
    if (more && slices.isOver) await slices.next()
  }
}

/** The first key after this one. */
const after = (key: Key): Key => Buffer.concat([key, Buffer.of(0)])

/** Others go first between any two pages. */
const alwaysOver: Slices = { isOver: true, next: nextTurn }
