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
export class SegmentReader {
  readonly #segments: Bytes
  #current: Segment | undefined
  /** The buffer of `concatValues`, with `wrapBytesMax` free bytes before and after the values. */
  #page = Buffer.allocUnsafe(128 * 1024)

  /** Opens the database of segments a second time, with a decoder that does not copy values. */
  constructor(root: Root) {
    // lmdb-js passes each value to `decode`. The bytes are LMDB's own and valid until the next step of the iterator.
    const encoder = {
      encode: (value: Uint8Array) => value,
      decode: (bytes: Buffer): true => {
        this.#current = new Segment(verifyChecksum(noKey, bytes))
        return true
      },
    }
    // The key of a segment is never used: do not copy it.
    const unread = { ...keyEncoder, readKey: () => nothing }
    this.#segments = root.openDB({ name: segmentsName, encoder, keyEncoder: unread } as never)
    Object.assign(this.#segments, { decoderCopies: true })
  }

  /** The values in the order of `keys`. Fastest if neighbouring keys follow each other. */
  getMany(keys: readonly Key[]): (Uint8Array | undefined)[] {
    const values: (Uint8Array | undefined)[] = []
    while (values.length < keys.length) {
      const known = values.length
      const first = keys[known] as Key
      this.#eachFrom(first, (segment) => {
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
  }

  /** Passes at most `limit` entries to `take`. Returns true if the range has more. */
  walk({ gte, lt, limit }: Range, kind: 'entries' | 'keys', take: Take): boolean {
    let taken = 0
    let more = false
    this.#eachFrom(gte, (segment) => {
      for (let at = segment.seek(gte); at < segment.count; at += 1) {
        if (segment.compare(at, lt) >= 0) return 'stop'
        more = taken === limit
        if (more) return 'stop'
        taken += 1
        take(segment.key(at), kind === 'keys' ? nothing : segment.value(at))
      }
      return 'continue'
    })
    return more
  }

  /** The values joined by commas, in a buffer that the next call overwrites; undefined past `bytesMax` bytes. */
  concatValues({ gte, lt, limit }: Range, bytesMax: number): ConcatenatedValues | undefined {
    let filled = wrapBytesMax
    let count = 0
    let lastKey: Key | undefined
    let more = false
    this.#eachFrom(gte, (segment) => {
      const start = count === 0 ? segment.seek(gte) : 0
      const end = segment.count === 0 || segment.compare(segment.count - 1, lt) < 0 ? segment.count : segment.seek(lt)
      const taken = Math.min(end - start, limit - count)
      if (taken > 0) {
        const length = segment.valuesLength(start, start + taken)
        const page = this.#pageOf(filled, length)
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
      return more || end < segment.count || filled - wrapBytesMax > bytesMax ? 'stop' : 'continue'
    })
    if (filled - wrapBytesMax > bytesMax) return undefined
    return concatenatedIn(this.#page, wrapBytesMax, filled, { count, lastKeyIfMore: more ? lastKey : undefined })
  }

  /** The page, with room for so many bytes behind those that it is filled with, and for a comma. */
  #pageOf(filled: number, length: number): Buffer {
    const needed = filled + length + 1 + wrapBytesMax
    if (needed > this.#page.length) {
      const larger = Buffer.allocUnsafe(needed * 2)
      this.#page.copy(larger, 0, 0, filled)
      this.#page = larger
    }
    return this.#page
  }

  /** Calls `visit` for each segment, from the one that may hold `key`, until it returns 'stop'. */
  #eachFrom(key: Key, visit: (segment: Segment) => 'continue' | 'stop'): void {
    const steps = this.#segments.getRange({ start: key })[Symbol.iterator]()
    while (steps.next().done !== true) {
      if (this.#current !== undefined && visit(this.#current) === 'stop') {
        steps.return?.()
        return
      }
    }
  }
}

const nothing = new Uint8Array(0)
