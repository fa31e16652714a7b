/** Applies a Write inside an LMDB transaction: all checks first, then the changes. */

import { deletionBytesMin, freeBytesMin, reservedBytesMin } from '../../limits.ts'
import { equalBytes } from '../bytes.ts'
import { applyCounts } from '../counts.ts'
import { requireFreeSpace } from '../free-space.ts'
import { type Committed, checkKey, type Key, type Write } from '../store.ts'
import type { Records } from './records.ts'
import type { Reserve } from './reserve.ts'
import type { Bytes } from './root.ts'
import { editSegments } from './segments.ts'
import { appendChecksum, noKey, verifyChecksum } from './value-checksum.ts'

export interface WriteTarget {
  readonly folder: string
  readonly data: Bytes
  readonly segments: Bytes
  readonly records: Records
  readonly free: (folder: string) => number
  readonly reserve: Reserve
}

/**
 * Evaluates every check and count before it writes anything. Throws StoreError `too_large`, and `unavailable` if too
 * little disk space would remain; the caller must then roll back the transaction.
 */
export function applyWrite({ folder, data, segments, records, free, reserve }: WriteTarget, write: Write): Committed {
  const conflicts: Key[] = []
  for (const { key, value } of write.checks ?? []) {
    if (!equalBytes(records.find(key), value)) conflicts.push(key)
  }
  const { entries: counts, full } = applyCounts(conflicts.length > 0 ? [] : (write.counts ?? []), records.find)
  if (conflicts.length + full.length > 0) return { ok: false, conflicts, full }
  // Estimate: LMDB pages are rarely full, and a segment ends somewhere in its last page.
  let bytes = 0
  const weighed = (key: Key, value: Uint8Array): Uint8Array => {
    bytes += value.length * 1.5 + keyBytesAbout
    return appendChecksum(key, value)
  }
  const editor = segmentEditor(segments, records, weighed)
  for (const key of write.deletes ?? []) {
    checkKey(key)
    if (records.isPacked(key)) editor.remove(key)
    else data.remove(key)
  }
  for (const { key, value } of counts) {
    if (value.length === 0) data.remove(key)
    else data.put(key, weighed(key, value))
  }
  for (const entry of write.puts ?? []) {
    checkKey(entry.key)
    if (records.isPacked(entry.key)) editor.put(entry)
    else data.put(entry.key, weighed(entry.key, entry.value))
  }
  editor.flush()
  const left = requireFreeSpace(folder, bytes, floors[write.fromReserve ?? 'other'], free)
  if (left >= freeBytesMin) reserve.refill()
  else if (left < deletionBytesMin) reserve.take(write.holder)
  return { ok: true }
}

/** Free bytes that a write must leave. */
const floors = { other: freeBytesMin, deletion: deletionBytesMin, revocation: reservedBytesMin }

/** Estimated bytes of a key and its node in the tree. */
const keyBytesAbout = 100

function segmentEditor(segments: Bytes, records: Records, weighed: (key: Key, value: Uint8Array) => Uint8Array) {
  return editSegments({
    bytesMax: records.segmentBytesMax,
    atOrAfter(key) {
      for (const entry of segments.getRange({ start: key, limit: 1 })) {
        return { ...entry, value: verifyChecksum(noKey, entry.value) }
      }
      return undefined
    },
    keyBefore(key) {
      const from = key === undefined ? {} : { start: key, exclusiveStart: true }
      for (const before of segments.getKeys({ ...from, reverse: true, limit: 1 } as never)) return before
      return undefined
    },
    put: (key, value) => void segments.put(key, weighed(noKey, value)),
    remove: (key) => void segments.remove(key),
  })
}
