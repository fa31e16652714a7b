/** Reads segments (`segments.ts`) in LMDB's mapped memory and copies only what was requested. */

import { wrapBytesMax } from '../../limits.ts'
import { comma, concatenatedIn } from '../concatenated.ts'
import type { ConcatenatedValues, Key, Range } from '../store.ts'
import { segmentsName } from './layout.ts'
import { type Bytes, keyEncoder, type Root } from './root.ts'
import { Segment } from './segments.ts'
import { noKey, verifyChecksum } from './value-checksum.ts'

/** Receives one entry of a range and owns its bytes. If only keys were requested, the value is empty. */
export type Take = (key: Key, value: Uint8Array) => void

/** Reads from the current snapshot, or inside the current transaction. */
export interface SegmentReader {
  /** The values in the order of `keys`. Fastest if neighbouring keys follow each other. */
  getMany(keys: readonly Key[]): (Uint8Array | undefined)[]
  /** Passes at most `limit` entries to `take`. Returns true if the range has more. */
  walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean
  /** The values joined by commas, in a buffer that the next call overwrites; undefined past `bytesMax` bytes. */
  concatValues(range: Range, bytesMax: number): ConcatenatedValues | undefined
}

/** Opens the database of segments a second time, with a decoder that does not copy values. */
export function openSegmentReader(root: Root): SegmentReader {
  let current: Segment | undefined
  // lmdb-js passes each value to `decode`. The bytes are LMDB's own and valid until the next step of the iterator.
  const encoder = {
    encode: (value: Uint8Array) => value,
    decode(bytes: Buffer): true {
      current = new Segment(verifyChecksum(noKey, bytes))
      return true
    },
  }
  // The key of a segment is never used: do not copy it.
  const unread = { ...keyEncoder, readKey: () => nothing }
  const segments: Bytes = root.openDB({ name: segmentsName, encoder, keyEncoder: unread } as never)
  Object.assign(segments, { decoderCopies: true })
  /** The buffer of `concatValues`, with `wrapBytesMax` free bytes before and after the values. */
  let page = Buffer.allocUnsafe(128 * 1024)

  /** Calls `visit` for each segment, from the one that may hold `key`, until it returns 'stop'. */
  function eachFrom(key: Key, visit: (segment: Segment) => 'go on' | 'stop'): void {
    const steps = segments.getRange({ start: key })[Symbol.iterator]()
    while (steps.next().done !== true) {
      if (current !== undefined && visit(current) === 'stop') {
        steps.return?.()
        return
      }
    }
  }

  return {
    getMany(keys) {
      const values: (Uint8Array | undefined)[] = []
      while (values.length < keys.length) {
        const known = values.length
        const first = keys[known] as Key
        eachFrom(first, (segment) => {
          // A key between `first` and the last key of this segment is in this segment or does not exist, because this
          // is the first segment that can hold `first`.
          let key: Key | undefined = first
          while (key !== undefined && Buffer.compare(first, key) <= 0 && segment.compare(segment.count - 1, key) >= 0) {
            const at = segment.seek(key)
            values.push(segment.compare(at, key) === 0 ? segment.value(at) : undefined)
            key = keys[values.length]
          }
          return 'stop'
        })
        if (values.length === known) values.push(undefined)
      }
      return values
    },

    walk({ gte, lt, limit }, kind, take) {
      let taken = 0
      let more = false
      eachFrom(gte, (segment) => {
        for (let at = segment.seek(gte); at < segment.count; at += 1) {
          if (segment.compare(at, lt) >= 0) return 'stop'
          more = taken === limit
          if (more) return 'stop'
          taken += 1
          take(segment.key(at), kind === 'keys' ? nothing : segment.value(at))
        }
        return 'go on'
      })
      return more
    },

    concatValues({ gte, lt, limit }, bytesMax) {
      let filled = wrapBytesMax
      let count = 0
      let lastKey: Key | undefined
      let more = false
      eachFrom(gte, (segment) => {
        const start = count === 0 ? segment.seek(gte) : 0
        const end = segment.count === 0 || segment.compare(segment.count - 1, lt) < 0 ? segment.count : segment.seek(lt)
        const taken = Math.min(end - start, limit - count)
        if (taken > 0) {
          const length = segment.valuesLength(start, start + taken)
          if (filled + length + 1 + wrapBytesMax > page.length) {
            const larger = Buffer.allocUnsafe((filled + length + 1 + wrapBytesMax) * 2)
            page.copy(larger, 0, 0, filled)
            page = larger
          }
          if (count > 0) {
            page[filled] = comma
            filled += 1
          }
          segment.copyValues(start, start + taken, page, filled)
          filled += length
          count += taken
          // A next page begins only after a full one. The next step makes the segment's bytes invalid.
          if (count === limit) lastKey = segment.key(start + taken - 1)
        }
        more = end - start > taken
        return more || end < segment.count || filled - wrapBytesMax > bytesMax ? 'stop' : 'go on'
      })
      if (filled - wrapBytesMax > bytesMax) return undefined
      return concatenatedIn(page, wrapBytesMax, filled, { count, lastKeyIfMore: more ? lastKey : undefined })
    },
  }
}

const nothing = new Uint8Array(0)
