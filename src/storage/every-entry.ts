/** Reads all entries under a prefix, a page at a time. */

import { prefixRange } from './keys.ts'
import type { Entry, Key, Store } from './store.ts'

/** In key order. Each page is a snapshot of its own. */
export async function* everyEntry(store: Pick<Store, 'range'>, prefix: Key, perRead: number): AsyncGenerator<Entry> {
  let { gte, lt } = prefixRange(prefix)
  for (let more = true; more; ) {
    const page = await store.range({ gte, lt, limit: perRead })
    yield* page.entries
    const last = page.entries.at(-1)
    if (last !== undefined) gte = Buffer.concat([last.key, Buffer.of(0)])
    more = page.more
  }
}
