/** Reads and verifies records, single LMDB entries and packed ones. The store begins the snapshot. */

import { copyBytes } from '../bytes.ts'
import { concatenate } from '../concatenated.ts'
import type { ConcatenatedValues, Key, Range } from '../store.ts'
import type { Bytes } from './root.ts'
import type { SegmentReader, Take } from './segment-reader.ts'
import type { PackedKinds } from './segments.ts'
import { verifyChecksum } from './value-checksum.ts'

export type Records = ReturnType<typeof createRecords>

export function createRecords(data: Bytes, packed: SegmentReader, kinds: PackedKinds) {
  const segmentBytes = new Map(Object.entries(kinds).map(([letter, bytes]) => [letter.charCodeAt(0), bytes]))
  const letters = [...segmentBytes.keys()].sort((a, b) => a - b)
  const walkSingle: SegmentReader['walk'] = (range, kind, take) => walkPlain(data, range, kind, take)
  const walkPacked: SegmentReader['walk'] = (range, kind, take) => packed.walk(range, kind, take)
  /** True if entries with this key are stored in segments. */
  const isPacked = (key: Key) => segmentBytes.has(key[0] ?? 0)

  function find(key: Key): Uint8Array | undefined {
    if (isPacked(key)) return packed.getMany([key])[0]
    // getBinaryFast() verifies in place; get() would copy first.
    const bytes = data.getBinaryFast(key)
    return bytes === undefined ? undefined : copyBytes(verifyChecksum(key, bytes))
  }

  /** Passes up to `limit` entries of a range to `take`, in order; for `keys` without values. True if there are more. */
  function walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean {
    const { gte, lt } = range
    let left = range.limit
    const counted: Take = (key, value) => {
      left -= 1
      take(key, value)
    }
    const part = (from: Key, to: Key, read: SegmentReader['walk']): boolean =>
      Buffer.compare(from, to) < 0 && read({ gte: from, lt: to, limit: left }, kind, counted)
    // Packed kinds divide the range: alternate between single entries and the segments of each kind.
    let from = gte
    for (const letter of letters) {
      const begin = Buffer.of(letter)
      const end = Buffer.of(letter + 1)
      if (part(from, minKey(lt, begin), walkSingle) || part(maxKey(from, begin), minKey(lt, end), walkPacked))
        return true
      from = maxKey(from, end)
    }
    return part(from, lt, walkSingle)
  }

  return {
    find,
    findMany(keys: readonly Key[]): (Uint8Array | undefined)[] {
      // Those in segments are read together: neighbours are often in the same one.
      const inSegments = packed.getMany(keys.filter(isPacked)).values()
      return keys.map((key) => (isPacked(key) ? inSegments.next().value : find(key)))
    },
    walk,
    /** Joined values; undefined past `bytesMax`. The buffer is borrowed if the range lies within one packed kind. */
    concatValues: (range: Range, bytesMax: number): ConcatenatedValues | undefined =>
      isPacked(range.gte) && range.lt[0] === range.gte[0]
        ? packed.concatValues(range, bytesMax)
        : concatenated(walk, range, bytesMax),
    isPacked,
    /** Maximum size in bytes of a segment with this key; 0 for a kind that is not packed. */
    segmentBytesMax: (key: Key): number => segmentBytes.get(key[0] ?? 0) ?? 0,
  }
}

function concatenated(walk: SegmentReader['walk'], range: Range, bytesMax: number): ConcatenatedValues | undefined {
  const values: Uint8Array[] = []
  let last: Key | undefined
  const more = walk(range, 'entries', (key, value) => {
    values.push(value)
    last = key
  })
  const bytes = values.reduce((sum, value) => sum + value.length, Math.max(0, values.length - 1))
  return bytes > bytesMax ? undefined : concatenate(values, more ? last : undefined)
}

function walkPlain(data: Bytes, { gte, lt, limit }: Range, kind: 'entries' | 'keys', take: Take): boolean {
  const options = { start: gte, end: lt, limit: limit + 1 }
  let taken = 0
  if (kind === 'keys') {
    for (const key of data.getKeys(options)) {
      if (taken === limit) return true
      taken += 1
      take(key, nothing)
    }
  } else {
    for (const { key, value } of data.getRange(options)) {
      if (taken === limit) return true
      taken += 1
      take(key, verifyChecksum(key, value))
    }
  }
  return false
}

const nothing = new Uint8Array(0)

const minKey = (a: Key, b: Key) => (Buffer.compare(a, b) <= 0 ? a : b)
const maxKey = (a: Key, b: Key) => (Buffer.compare(a, b) >= 0 ? a : b)
