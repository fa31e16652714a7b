/**
 * Reading records: of each kind where it lies, as entries of LMDB's own or packed in segments. Values are verified
 * against their checksums. Nothing here begins a snapshot; the store does.
 */

import { type ConcatenatedValues, concatenate, copyBytes, type Key, type Range } from '../store.ts'
import { verifyChecksum } from './checksum.ts'
import type { Bytes } from './root.ts'
import type { SegmentReader, Take } from './segment-reader.ts'
import type { PackedKinds } from './segments.ts'

export interface Records {
  find(key: Key): Uint8Array | undefined
  findMany(keys: readonly Key[]): (Uint8Array | undefined)[]
  /** Gives the entries of a range to `take`. Returns whether there are more. With `keys`, their values are empty. */
  walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean
  /** In a borrowed buffer where the range is of one packed kind. */
  concatValues(range: Range): ConcatenatedValues
  /** Is it an entry of a segment? */
  isPacked(key: Key): boolean
  /** How large segments with this key may be; 0 for a kind that is not packed. */
  segmentBytesMax(key: Key): number
}

export function createRecords(data: Bytes, packed: SegmentReader, kinds: PackedKinds): Records {
  const segmentBytes = new Map(Object.entries(kinds).map(([letter, bytes]) => [letter.charCodeAt(0), bytes]))
  const letters = [...segmentBytes.keys()].sort((a, b) => a - b)
  const isPacked = (key: Key) => segmentBytes.has(key[0] ?? 0)

  function find(key: Key): Uint8Array | undefined {
    if (isPacked(key)) return packed.getMany([key])[0]
    // Its own bytes, looked at where they lie; `get` would copy them first.
    const bytes = data.getBinaryFast(key)
    return bytes === undefined ? undefined : copyBytes(verifyChecksum(key, bytes))
  }

  /** Gives the entries of a range to `take`, before, in and after the segments. Returns whether there are more. */
  function walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean {
    const { gte, lt } = range
    let left = range.limit
    const counted: Take = (key, value) => {
      left -= 1
      take(key, value)
    }
    const part = (from: Key, to: Key, read: typeof packed.walk): boolean =>
      Buffer.compare(from, to) < 0 && read({ gte: from, lt: to, limit: left }, kind, counted)
    // The range falls into parts that are in segments and parts that are not, in turn.
    let from = gte
    for (const letter of letters) {
      const begin = Buffer.of(letter)
      const end = Buffer.of(letter + 1)
      if (part(from, minKey(lt, begin), walkPlain) || part(maxKey(from, begin), minKey(lt, end), packed.walk))
        return true
      from = maxKey(from, end)
    }
    return part(from, lt, walkPlain)
  }

  function walkPlain({ gte, lt, limit }: Range, kind: 'entries' | 'keys', take: Take): boolean {
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

  /** In a borrowed buffer where the range is of one packed kind. */
  function concatValues(range: Range): ConcatenatedValues {
    if (isPacked(range.gte) && range.lt[0] === range.gte[0]) return packed.concatValues(range)
    const values: Uint8Array[] = []
    let last: Key | undefined
    const more = walk(range, 'entries', (key, value) => {
      values.push(value)
      last = key
    })
    return concatenate(values, more ? last : undefined)
  }

  return {
    find,
    findMany: (keys) => (keys.every(isPacked) ? packed.getMany(keys) : keys.map(find)),
    walk,
    concatValues,
    isPacked,
    segmentBytesMax: (key) => segmentBytes.get(key[0] ?? 0) ?? 0,
  }
}

const nothing = new Uint8Array(0)

function minKey(a: Key, b: Key): Key {
  return Buffer.compare(a, b) <= 0 ? a : b
}

function maxKey(a: Key, b: Key): Key {
  return Buffer.compare(a, b) >= 0 ? a : b
}
