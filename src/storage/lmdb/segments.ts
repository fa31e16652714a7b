/**
 * PackedKinds: neighbouring entries kept together in one value, so that a page of a hundred records is read in a
 * few steps instead of a hundred. A segment holds up to some kilobytes of entries in the order of their keys
 * and is stored under a key that is not below its last: one search from any key lands in the segment that may
 * hold it. Pure: bytes in, bytes out; the engine finds, reads and writes them.
 *
 *   u32 count | u32 key end, u32 value end (each entry) | keys | values with a comma after each
 *
 * The values stand as a page shows them: a part of a segment is copied into an answer in one piece.
 */

import { segmentSpillBytes } from '../../limits.ts'
import { asBuffer, comma, copyBytes, type Entry, type Key } from '../store.ts'
import { createScratchBuffer } from './scratch-buffer.ts'

/**
 * Entries whose keys begin with these letters are kept in segments, up to so many bytes. Connections
 * are read by the page, and a page is a few segments. Index entries are small and many; a segment of one page of LMDB
 * is as much as LMDB itself would write for one of them.
 */
export const packedKinds = { c: 16 * 1024, x: 4 * 1024 - 64 } as const satisfies PackedKinds

export type PackedKinds = Readonly<Record<string, number>>

const headBytes = 4
const slotBytes = 8

/** A segment read where it lies: nothing is decoded, and it is valid as long as its bytes are. */
export class Segment {
  readonly count: number
  readonly #bytes: Buffer
  readonly #keysStart: number
  readonly #valuesStart: number

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.count = bytes.readUInt32LE(0)
    this.#keysStart = headBytes + this.count * slotBytes
    this.#valuesStart = this.#keysStart + this.#keyEnd(this.count - 1)
  }

  /** A copy. */
  key(index: number): Key {
    return copyBytes(this.#bytes, this.#keysStart + this.#keyEnd(index - 1), this.#keysStart + this.#keyEnd(index))
  }

  /** A copy. */
  value(index: number): Uint8Array {
    return copyBytes(this.#bytes, this.#valueStart(index), this.#valueStart(index + 1) - 1)
  }

  /** How many bytes the values from `start` to before `end` are, with commas between them. */
  valuesLength(start: number, end: number): number {
    return this.#valueStart(end) - 1 - this.#valueStart(start)
  }

  /** Copies them, in one piece. */
  copyValues(start: number, end: number, target: Buffer, at: number): void {
    this.#bytes.copy(target, at, this.#valueStart(start), this.#valueStart(end) - 1)
  }

  /** Below zero when the entry's key comes before `key`, zero when it is the same. */
  compare(index: number, key: Key): number {
    const bytes = this.#bytes
    const start = this.#keysStart + this.#keyEnd(index - 1)
    const length = this.#keysStart + this.#keyEnd(index) - start
    // Keys are short: a loop is through before a call of the runtime's own comparison has begun.
    for (let at = 0; at < length && at < key.length; at += 1) {
      const difference = (bytes[start + at] as number) - (key[at] as number)
      if (difference !== 0) return difference
    }
    return length - key.length
  }

  /** The position of the first key that is `key` or comes after it; `count` when there is none. */
  seek(key: Key): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.compare(middle, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #keyEnd(index: number): number {
    return index < 0 ? 0 : this.#bytes.readUInt32LE(headBytes + index * slotBytes)
  }

  /** A comma stands before it, unless it is the first. */
  #valueStart(index: number): number {
    return this.#valuesStart + (index === 0 ? 0 : this.#bytes.readUInt32LE(headBytes + (index - 1) * slotBytes + 4))
  }
}

/** Entries in the order of their keys, as the value of a segment. The bytes are lent until the next call. */
export function encodeSegment(entries: readonly Entry[]): Buffer {
  const keyBytes = entries.reduce((sum, { key }) => sum + key.length, 0)
  const valueBytes = entries.reduce((sum, { value }) => sum + value.length + 1, 0)
  const length = headBytes + entries.length * slotBytes + keyBytes + valueBytes
  const bytes = written(length)
  bytes.writeUInt32LE(entries.length, 0)
  const keysStart = headBytes + entries.length * slotBytes
  const valuesStart = keysStart + keyBytes
  let keyEnd = 0
  let valueEnd = 0
  for (const [index, { key, value }] of entries.entries()) {
    bytes.set(key, keysStart + keyEnd)
    keyEnd += key.length
    bytes.set(value, valuesStart + valueEnd)
    valueEnd += value.length + 1
    bytes[valuesStart + valueEnd - 1] = comma
    bytes.writeUInt32LE(keyEnd, headBytes + index * slotBytes)
    bytes.writeUInt32LE(valueEnd, headBytes + index * slotBytes + 4)
  }
  return bytes
}

const written = createScratchBuffer()

/** Where segments are kept: keys are those of segments. All inside one transaction. */
export interface SegmentStorage {
  /** A segment that begins with this key is split past so many bytes. */
  bytesMax(key: Key): number
  /** The segment under the least key that is `key` or comes after it. */
  atOrAfter(key: Key): Entry | undefined
  /** The key of the last segment before `key`, or of the last of all. */
  keyBefore(key: Key | undefined): Key | undefined
  /** Copies the value: it is lent. */
  put(key: Key, value: Uint8Array): void
  remove(key: Key): void
}

export interface SegmentEditor {
  put(entry: Entry): void
  remove(key: Key): void
  /** Writes what is still held. */
  flush(): void
}

/** Entries one at a time, in any order; the faster the more neighbours follow each other. */
export function editSegments(storage: SegmentStorage): SegmentEditor {
  let open: OpenRun | undefined

  function openFor(key: Key): OpenRun {
    if (open !== undefined && holds(open, key)) return open
    flush()
    const after = storage.atOrAfter(key)
    // What comes after all segments goes into the last of them.
    const lastKey = after === undefined ? storage.keyBefore(undefined) : undefined
    const stored = lastKey === undefined ? after : storage.atOrAfter(lastKey)
    open = openRun(stored, stored === undefined ? undefined : storage.keyBefore(stored.key), after === undefined)
    return open
  }

  function flush(): void {
    if (open?.changed === true) {
      const { storedKey, entries } = open
      const segments = splitSegments(entries, storage.bytesMax)
      const lastKey = segments.at(-1)?.at(-1)?.key
      const keepsKey = storedKey !== undefined && lastKey !== undefined && Buffer.compare(storedKey, lastKey) >= 0
      if (storedKey !== undefined && !keepsKey) storage.remove(storedKey)
      for (const [index, segment] of segments.entries()) {
        const isLast = index === segments.length - 1
        storage.put(isLast && keepsKey ? storedKey : (segment.at(-1) as Entry).key, encodeSegment(segment))
      }
    }
    open = undefined
  }

  return {
    put(entry) {
      const segment = openFor(entry.key)
      const at = positionOf(segment.entries, entry.key)
      const known = segment.entries[at]
      const replaces = known !== undefined && Buffer.compare(known.key, entry.key) === 0
      segment.entries.splice(at, replaces ? 1 : 0, entry)
      segment.size += sizeOf(entry) - (replaces ? sizeOf(known) : 0)
      segment.changed = true
      // A long load holds a few segments at most.
      if (segment.size > segmentSpillBytes) flush()
    },
    remove(key) {
      const segment = openFor(key)
      const at = positionOf(segment.entries, key)
      const known = segment.entries[at]
      if (known === undefined || Buffer.compare(known.key, key) !== 0) return
      segment.entries.splice(at, 1)
      segment.size -= sizeOf(known)
      segment.changed = true
    },
    flush,
  }
}

/** A segment that is being edited. */
interface OpenRun {
  /** The key that it is stored under, if it is. */
  readonly storedKey: Key | undefined
  /** It takes keys after this one, up to `storedKey`, or all of them when it is the last. */
  readonly bound: Key | undefined
  readonly isLast: boolean
  readonly entries: Entry[]
  size: number
  changed: boolean
}

function openRun(stored: Entry | undefined, bound: Key | undefined, isLast: boolean): OpenRun {
  const entries = stored === undefined ? [] : entriesOf(stored.value)
  const size = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  return { storedKey: stored?.key, bound, isLast, entries, size, changed: false }
}

function holds({ storedKey, bound, isLast }: OpenRun, key: Key): boolean {
  if (bound !== undefined && Buffer.compare(key, bound) <= 0) return false
  return isLast || (storedKey !== undefined && Buffer.compare(storedKey, key) >= 0)
}

function entriesOf(value: Uint8Array): Entry[] {
  const segment = new Segment(asBuffer(value))
  return Array.from({ length: segment.count }, (_, index) => ({ key: segment.key(index), value: segment.value(index) }))
}

function sizeOf({ key, value }: Entry): number {
  return slotBytes + key.length + value.length + 1
}

function positionOf(entries: readonly Entry[], key: Key): number {
  // A load comes in order: the end first.
  const last = entries.at(-1)
  if (last === undefined || Buffer.compare(last.key, key) < 0) return entries.length
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (Buffer.compare((entries[middle] as Entry).key, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Into segments that are about equally full, none past its bound unless a single entry is. */
export function splitSegments(entries: readonly Entry[], bytesMax: SegmentStorage['bytesMax']): Entry[][] {
  const size = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  const segments: Entry[][] = []
  let segment: Entry[] = []
  let filled = 0
  let bound = 0
  for (const entry of entries) {
    // Kinds never share a segment: one of them can be written anew while the others cannot be read.
    if (segment.length === 0 || filled + sizeOf(entry) > bound || segment[0]?.key[0] !== entry.key[0]) {
      const most = bytesMax(entry.key)
      bound = Math.max(size / Math.ceil(size / most), sizeOf(entry))
      filled = 0
      segment = []
      segments.push(segment)
    }
    segment.push(entry)
    filled += sizeOf(entry)
  }
  return segments
}
