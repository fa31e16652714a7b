/**
 * Scans the whole store, in one snapshot and without stopping at damage, and rewrites the index. For `postern verify`
 * and for exports.
 */

import { scannedPerRead } from '../../limits.ts'
import { directoryIndexKinds, prefixOf, prefixRange, stagedKey } from '../keys.ts'
import { isOf, stagedNamespaces } from '../staged.ts'
import type { Entry, Key } from '../store.ts'
import { openRecords } from './layout.ts'
import { withSharedLock } from './opening-lock.ts'
import { type Bytes, openRoot, type Root } from './root.ts'
import { encodeSegment, packedKinds, Segment, splitSegments } from './segments.ts'
import { appendChecksum, noKey, tryVerifyChecksum, verifyChecksum } from './value-checksum.ts'

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

/** Visits a whole store, in one snapshot. */
export type Scan = (visitor: ScanVisitor) => Promise<void>

/** `folder` is the store's folder. A server may have it open. */
export async function scanStore(folder: string, { entry, damaged }: ScanVisitor): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = withSharedLock(folder, () => openRecords(root))
    const note = data.get(stagedKey)
    const ahead = stagedNamespaces(note === undefined ? undefined : tryVerifyChecksum(stagedKey, note))
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

/** Passes all entries to `take` in key order, a batch at a time and in one snapshot. Throws StoreError `damaged`. */
export async function readFolder(
  folder: string,
  take: (entries: readonly Entry[]) => void | Promise<void>,
): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = withSharedLock(folder, () => openRecords(root))
    const transaction = root.useReadTransaction()
    try {
      let batch: Entry[] = []
      for (const entry of inKeyOrder(singlesOf(data, transaction), packedOf(segments, transaction))) {
        batch.push(entry)
        if (batch.length < scannedPerRead) continue
        await take(batch)
        batch = []
      }
      if (batch.length > 0) await take(batch)
    } finally {
      transaction.done()
    }
  } finally {
    await root.close()
  }
}

type ReadTransaction = ReturnType<Root['useReadTransaction']>

function* singlesOf(data: Bytes, transaction: ReadTransaction): Generator<Entry> {
  for (const { key, value } of data.getRange({ transaction })) yield { key, value: verifyChecksum(key, value) }
}

function* packedOf(segments: Bytes, transaction: ReadTransaction): Generator<Entry> {
  for (const { value } of segments.getRange({ transaction })) {
    const segment = new Segment(verifyChecksum(noKey, value))
    for (let at = 0; at < segment.count; at += 1) yield { key: segment.key(at), value: segment.value(at) }
  }
}

/** Merges two sequences that are in order. */
function* inKeyOrder(one: Iterator<Entry>, other: Iterator<Entry>): Generator<Entry> {
  let [a, b] = [one.next(), other.next()]
  while (a.done !== true || b.done !== true) {
    if (b.done === true || (a.done !== true && Buffer.compare(a.value.key, b.value.key) < 0)) {
      yield a.value as Entry
      a = one.next()
    } else {
      yield b.value
      b = other.next()
    }
  }
}

/**
 * Replaces the whole index in one transaction, even if the old one cannot be read. `entries` must be sorted. `more` are
 * single entries written with it (versions, usages).
 */
export async function replaceIndex(folder: string, entries: readonly Entry[], more: readonly Entry[]): Promise<void> {
  const root = openRoot(folder)
  try {
    const { data, segments } = withSharedLock(folder, () => openRecords(root))
    const replace = () => {
      const { gte: start, lt: end } = prefixRange(prefixOf('indexEntry'))
      for (const key of [...segments.getKeys({ start, end })]) segments.remove(key)
      for (const segment of splitSegments(entries, () => packedKinds.x)) {
        segments.put((segment.at(-1) as Entry).key, appendChecksum(noKey, encodeSegment(segment)))
      }
      for (const kind of directoryIndexKinds) {
        for (const key of [...data.getKeys({ start: kind, end: prefixRange(kind).lt })]) data.remove(key)
      }
      for (const { key, value } of more) data.put(key, appendChecksum(key, value))
    }
    withSharedLock(folder, () => root.transactionSync(replace))
  } finally {
    await root.close()
  }
}
