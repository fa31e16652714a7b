/** Reads segments (`segments.ts`) where LMDB has them, without a copy of what is not asked for. */

import { wrapBytesMax } from '../../limits.ts'
import { type ConcatenatedValues, comma, concatenatedIn, type Key, type Range } from '../store.ts'
import { noKey, verifyChecksum } from './checksum.ts'
import { type Bytes, keyEncoder, type Root } from './root.ts'
import { Segment } from './segments.ts'

/** Takes an entry of a range; its bytes are the taker's to keep. The value is empty where only keys are asked for. */
export type Take = (key: Key, value: Uint8Array) => void

/** Reads in the snapshot that there is, or in the transaction that is being made. */
export interface SegmentReader {
  /** The values in the order of the keys; the faster the more of them are neighbours, one after the other. */
  getMany(keys: readonly Key[]): (Uint8Array | undefined)[]
  /** Gives at most `limit` entries to `take`; returns whether the range holds more. */
  walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean
  /** The values with commas between them, in a buffer that the next concatenation overwrites. */
  concatValues(range: Range): ConcatenatedValues
}

export function openSegmentReader(root: Root): SegmentReader {
  let current: Segment | undefined
  // lmdb-js decodes values through its `encoder`. The bytes it hands over are its own, valid until the next step.
  const encoder = {
    encode: (value: Uint8Array) => value,
    decode(bytes: Buffer): true {
      current = new Segment(verifyChecksum(noKey, bytes))
      return true
    },
  }
  // Nobody asks for the key that a segment is stored under: it is not copied out.
  const unread = { ...keyEncoder, readKey: () => nothing }
  const segments: Bytes = root.openDB({ name: 'runs', encoder, keyEncoder: unread } as never)
  Object.assign(segments, { decoderCopies: true })
  /** Values, with room before and after for what stands around them. */
  let page = Buffer.allocUnsafe(128 * 1024)

  /** Shows segments one after the other, from the one that may hold `key`, until `visit` says stop. */
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
          // In this segment or nowhere: it was searched for the first, and these are not before that nor past its last.
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

    concatValues({ gte, lt, limit }) {
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
          // Only the end of a full page can be where a next one begins; its bytes are gone with the next segment.
          if (count === limit) lastKey = segment.key(start + taken - 1)
        }
        more = end - start > taken
        return more || end < segment.count ? 'stop' : 'go on'
      })
      return concatenatedIn(page, wrapBytesMax, filled, { count, lastKeyIfMore: more ? lastKey : undefined })
    },
  }
}

const nothing = new Uint8Array(0)
