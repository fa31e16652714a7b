/**
 * Scans the whole store, in one snapshot and without stopping at damage, and rewrites the index. For `postern verify`
 * and for exports.
 */

import { isOf, namespacesAhead } from '../ahead.ts'
import { aheadKey, indexKind, prefixRange } from '../keys.ts'
import type { Entry, Key } from '../store.ts'
import { appendChecksum, noKey, tryVerifyChecksum } from './checksum.ts'
import { openRecords } from './migrations.ts'
import { openRoot } from './root.ts'
import { encodeSegment, packedKinds, Segment, splitSegments } from './segments.ts'

/** Called for every value, synchronously and inside the snapshot. */
export interface ScanVisitor {
  /**
   * An intact record. Single records come first, then packed ones, each in key order. Records only written ahead are
   * skipped.
   */
  entry(entry: Entry): void
  /** The value under this key cannot be read. For a segment this is the segment's key, the last of its entries. */
  damaged(key: Key): void
}

/** `folder` is the store's folder. A server may have it open. */
export async function scanStore(folder: string, { entry, damaged }: ScanVisitor): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = openRecords(root)
    const note = data.get(aheadKey)
    const ahead = namespacesAhead(note === undefined ? undefined : tryVerifyChecksum(aheadKey, note))
    for (const { key, value } of data.getRange({})) {
      const intact = tryVerifyChecksum(key, value)
      // A search descends the tree, a walk follows the leaves: a damaged tree may break only one of them.
      if (intact === undefined || !data.doesExist(key)) damaged(key)
      else if (!isOf(ahead, key)) entry({ key, value: intact })
    }
    let before: Key = new Uint8Array(0)
    for (const { key, value } of segments.getRange({})) {
      const intact = tryVerifyChecksum(noKey, value)
      const segment = intact === undefined ? undefined : new Segment(intact)
      // A segment's key is its last entry's key or greater, and its first entry follows the key of the previous
      // segment.
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
 * Replaces the whole index in one transaction, even if the old one cannot be read. `entries` must be sorted. `more` are
 * single entries written with it (versions, usages).
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
