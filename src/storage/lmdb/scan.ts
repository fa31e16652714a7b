/**
 * The store looked at as it lies: every value with its checksum, in one snapshot, without stopping at what is
 * damaged. For `postern verify`, which also has index entries written anew.
 */

import { isOf, namespacesAhead } from '../ahead.ts'
import { aheadKey, indexKind, prefixRange } from '../keys.ts'
import type { Entry, Key } from '../store.ts'
import { appendChecksum, noKey, tryVerifyChecksum } from './checksum.ts'
import { openRecords } from './migrations.ts'
import { openRoot } from './root.ts'
import { encodeSegment, packedKinds, Segment, splitSegments } from './segments.ts'

export interface ScanVisitor {
  /** A record, whole. Of one kind after the other, each in the order of its keys. None that is only written ahead. */
  entry(entry: Entry): void
  /** What is kept under this key cannot be read; of a segment, the last of its keys. */
  damaged(key: Key): void
}

/** `folder` is the store's. It may be served meanwhile. */
export async function scanStore(folder: string, { entry, damaged }: ScanVisitor): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = openRecords(root)
    const note = data.get(aheadKey)
    const ahead = namespacesAhead(note === undefined ? undefined : tryVerifyChecksum(aheadKey, note))
    for (const { key, value } of data.getRange({})) {
      const intact = tryVerifyChecksum(key, value)
      // A search goes another way than a walk: both must get there.
      if (intact === undefined || !data.doesExist(key)) damaged(key)
      else if (!isOf(ahead, key)) entry({ key, value: intact })
    }
    let before: Key = new Uint8Array(0)
    for (const { key, value } of segments.getRange({})) {
      const intact = tryVerifyChecksum(noKey, value)
      const segment = intact === undefined ? undefined : new Segment(intact)
      // A segment stands under its last key, or under one that was its last; and after the segment before it.
      const isInPlace =
        segment !== undefined &&
        (segment.count === 0 || (segment.compare(segment.count - 1, key) <= 0 && segment.compare(0, before) > 0)) &&
        segments.doesExist(key)
      before = key
      if (!isInPlace) {
        damaged(key)
        continue
      }
      for (let at = 0; at < segment.count; at += 1) {
        if (!isOf(ahead, segment.key(at))) entry({ key: segment.key(at), value: segment.value(at) })
      }
    }
  } finally {
    await root.close()
  }
}

/**
 * Replaces the whole index by these entries, sorted, whether or not the old ones can be read. One transaction.
 * `more` writes beside them.
 */
export async function replaceIndex(folder: string, entries: readonly Entry[], more: readonly Entry[]): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = openRecords(root)
    root.transactionSync(() => {
      for (const key of [...segments.getKeys({ start: indexKind, end: prefixRange(indexKind).lt })])
        segments.remove(key)
      for (const segment of splitSegments(entries, () => packedKinds.x)) {
        segments.put((segment.at(-1) as Entry).key, appendChecksum(noKey, encodeSegment(segment)))
      }
      for (const { key, value } of more) data.put(key, appendChecksum(key, value))
    })
  } finally {
    await root.close()
  }
}
