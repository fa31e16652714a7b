/** Scans the whole store in one snapshot, past damage, for verify, exports and copies; and rewrites the index. */

import { scannedPerRead } from '../../limits.ts'
import { directoryIndexKinds, prefixOf, prefixRange, stagedKey } from '../keys.ts'
import { piecesOf } from '../pieces.ts'
import { isOf, stagedNamespaces } from '../staged.ts'
import { type Entry, type Key, StoreError } from '../store.ts'
import { openRecords } from './layout.ts'
import { withLock } from './opening-lock.ts'
import { type Bytes, openRoot, type Root } from './root.ts'
import { encodeSegment, packedKinds, Segment, splitSegments } from './segments.ts'
import { appendChecksum, noKey, tryVerifyChecksum } from './value-checksum.ts'

/** A record as it lies. */
export interface Scanned {
  /** Of a segment that cannot be read, its own key: the last of its entries. */
  readonly key: Key
  /** Undefined if it cannot be read. */
  readonly value: Uint8Array | undefined
}

/** Passes a store to `take` in batches of one snapshot: single records, then packed ones; none that is only staged. */
export type Scan = (take: (records: readonly Scanned[]) => void | Promise<void>) => Promise<void>

/** `folder` is the store's folder. A server may have it open. */
export function scanStore(folder: string): Scan {
  return (take) =>
    withRecords(folder, async (records) => {
      const transaction = records.root.useReadTransaction()
      try {
        for (const batch of piecesOf(everyRecord(records, transaction), { most: scannedPerRead })) await take(batch)
      } finally {
        transaction.done()
      }
    })
}

/** The records, for those who need all of them. Throws StoreError `damaged` if one cannot be read. */
export function intact(records: readonly Scanned[]): readonly Entry[] {
  if (records.some(({ value }) => value === undefined))
    throw new StoreError('damaged', 'a record is damaged: run `postern store verify`')
  return records as readonly Entry[]
}

type OpenedRecords = ReturnType<typeof openRecords> & { readonly root: Root }

async function withRecords<T>(folder: string, work: (records: OpenedRecords) => T | Promise<T>): Promise<T> {
  const root = openRoot(folder)
  try {
    return await work({ root, ...withLock(folder, 'write', () => openRecords(root)) })
  } finally {
    await root.close()
  }
}

function* everyRecord(
  { data, segments }: OpenedRecords,
  transaction: ReturnType<Root['useReadTransaction']>,
): Generator<Scanned> {
  // A search descends the tree, a walk follows the leaves: a damaged tree may break only one of them.
  const isFound = (records: Bytes, key: Key) => records.doesExist(key, undefined as never, { transaction })
  const note = data.get(stagedKey, { transaction })
  const ahead = stagedNamespaces(note === undefined ? undefined : tryVerifyChecksum(stagedKey, note))
  for (const { key, value } of data.getRange({ transaction })) {
    const verified = tryVerifyChecksum(key, value)
    if (verified === undefined || !isFound(data, key)) yield { key, value: undefined }
    else if (!isOf(ahead, key)) yield { key, value: verified }
  }
  let before: Key = new Uint8Array(0)
  for (const { key, value } of segments.getRange({ transaction })) {
    const verified = tryVerifyChecksum(noKey, value)
    const segment = verified === undefined ? undefined : new Segment(verified)
    // A segment's key is its last entry's key or greater, and its first entry follows the key of the previous
    // segment.
    const isInPlace =
      segment !== undefined &&
      (segment.count === 0 || (segment.compare(segment.count - 1, key) <= 0 && segment.compare(0, before) > 0)) &&
      isFound(segments, key)
    before = key
    if (!isInPlace) {
      yield { key, value: undefined }
      continue
    }
    for (let at = 0; at < segment.count; at += 1) {
      if (!isOf(ahead, segment.key(at))) yield { key: segment.key(at), value: segment.value(at) }
    }
  }
}

export interface Repair {
  readonly scan: Scan
  /** Replaces all index entries by these, in key order. `more`: the directory's index entries, and other entries. */
  replaceIndex(entries: readonly Entry[], more: readonly Entry[]): Promise<void>
}

/** As `Repair.replaceIndex`, in one transaction, even if the old index cannot be read. */
export function replaceIndex(folder: string, entries: readonly Entry[], more: readonly Entry[]): Promise<void> {
  return withRecords(folder, ({ root, data, segments }) => {
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
    withLock(folder, 'write', () => root.transactionSync(replace))
  })
}
