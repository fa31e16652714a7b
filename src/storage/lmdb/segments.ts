/**
 * Segments: neighbouring entries stored together in one value, so that a page of a hundred records takes a few steps
 * and not a hundred. A segment holds up to some kilobytes of entries in key order. Its own key is its last entry's key
 * or greater, so one search from any key finds the only segment that can contain it. Pure functions: bytes in, bytes
 * out; the engine finds, reads and writes them.
 *
 *   u32 count | u32 key end, u32 value end (each entry) | keys | values with a comma after each
 *
 * Values are stored as a page shows them, joined by commas: part of a segment is copied into a response in one piece.
 */

import { asBuffer, copyBytes } from '../bytes.ts'
import { comma } from '../concatenated.ts'
import type { Entry, Key } from '../store.ts'
import { createScratchBuffer } from './scratch-buffer.ts'

/** Entries of one segment that a long load holds in memory. Past it: written. */
const segmentSpillBytes = 2 ** 20

/**
 * Kinds stored in segments, with the largest size of a segment in bytes. With 16 kB, few segments have a page of
 * connections. Index entries change one by one: their segment is one LMDB page, which LMDB rewrites for each anyway.
 */
export const packedKinds = { c: 16 * 1024, x: 4 * 1024 - 64 } as const satisfies PackedKinds

/** Maximum segment bytes by kind letter. */
export type PackedKinds = Readonly<Record<string, number>>

const headBytes = 4
const slotBytes = 8

/** A view of an encoded segment. Nothing is decoded in advance. Valid as long as its bytes are. */
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

  /** A copy of the key. */
  key(index: number): Key {
    return copyBytes(this.#bytes, this.#keysStart + this.#keyEnd(index - 1), this.#keysStart + this.#keyEnd(index))
  }

  /** A copy of the value, without its comma. */
  value(index: number): Uint8Array {
    return copyBytes(this.#bytes, this.#valueStart(index), this.#valueStart(index + 1) - 1)
  }

  /** The length of the values from `start` to before `end`, joined by commas. */
  valuesLength(start: number, end: number): number {
    return this.#valueStart(end) - 1 - this.#valueStart(start)
  }

  /** Copies the values from `start` to before `end`, joined by commas, to `target` at `at`. */
  copyValues(start: number, end: number, target: Buffer, at: number): void {
    this.#bytes.copy(target, at, this.#valueStart(start), this.#valueStart(end) - 1)
  }

  /** Negative if the entry's key sorts before `key`, zero if it is the same. */
  compare(index: number, key: Key): number {
    const bytes = this.#bytes
    const start = this.#keysStart + this.#keyEnd(index - 1)
    const length = this.#keysStart + this.#keyEnd(index) - start
    // For short keys this loop is faster than a call of Buffer.compare().
    for (let at = 0; at < length && at < key.length; at += 1) {
      const difference = (bytes[start + at] as number) - (key[at] as number)
      if (difference !== 0) return difference
    }
    return length - key.length
  }

  /** The index of the first entry whose key is `key` or greater; `count` if there is none. */
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

  /** The end of the previous value, after its comma. */
  #valueStart(index: number): number {
    return this.#valuesStart + (index === 0 ? 0 : this.#bytes.readUInt32LE(headBytes + (index - 1) * slotBytes + 4))
  }
}

/** Encodes entries, which must be in key order. The bytes are borrowed until the next call. */
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

/** Access to stored segments within one transaction. Keys are those of segments, not of their entries. */
export interface SegmentStorage {
  /** The size in bytes beyond which a segment whose first entry has this key is split. */
  bytesMax(key: Key): number
  /** The segment stored under the smallest key that is `key` or greater. */
  atOrAfter(key: Key): Entry | undefined
  /** The key of the last segment before `key`; with undefined, of the last segment. */
  keyBefore(key: Key | undefined): Key | undefined
  /** Must copy the value: it is borrowed. */
  put(key: Key, value: Uint8Array): void
  remove(key: Key): void
}

/**
 * Edits one segment at a time and writes it when a key of another segment follows. Any order of keys is correct; key
 * order is fastest, because each segment is then read and written once. Nothing is complete before `flush`.
 */
export function editSegments(storage: SegmentStorage) {
  let open: OpenSegment | undefined

  function openFor(key: Key): OpenSegment {
    if (open !== undefined && holds(open, key)) return open
    flush()
    const after = storage.atOrAfter(key)
    // A key after all segments is added to the last one.
    const lastKey = after === undefined ? storage.keyBefore(undefined) : undefined
    const stored = lastKey === undefined ? after : storage.atOrAfter(lastKey)
    open = openSegment(stored, stored === undefined ? undefined : storage.keyBefore(stored.key), after === undefined)
    return open
  }

  /** Writes the segment that is still in memory. */
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
    put(entry: Entry): void {
      const segment = openFor(entry.key)
      const at = positionOf(segment.entries, entry.key)
      const known = segment.entries[at]
      const replaces = known !== undefined && Buffer.compare(known.key, entry.key) === 0
      segment.entries.splice(at, replaces ? 1 : 0, entry)
      segment.size += sizeOf(entry) - (replaces ? sizeOf(known) : 0)
      segment.changed = true
      // Bounds the memory of a long load.
      if (segment.size > segmentSpillBytes) flush()
    },
    remove(key: Key): void {
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

/** A segment in memory, decoded for editing. */
type OpenSegment = ReturnType<typeof openSegment>

/** `stored`: undefined for a new one. */
function openSegment(stored: Entry | undefined, bound: Key | undefined, isLast: boolean) {
  const entries = stored === undefined ? [] : entriesOf(stored.value)
  return {
    /** The key under which it is stored. */
    storedKey: stored?.key,
    /** It takes keys greater than this one, up to and including `storedKey`; the last segment has no upper bound. */
    bound,
    isLast,
    entries,
    size: entries.reduce((sum, entry) => sum + sizeOf(entry), 0),
    changed: false,
  }
}

function holds({ storedKey, bound, isLast }: OpenSegment, key: Key): boolean {
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
  // From the end: a load arrives in key order.
  return entries.findLastIndex((entry) => Buffer.compare(entry.key, key) < 0) + 1
}

/** Splits entries into about equally full segments. None exceeds its bound, except one with a single larger entry. */
export function splitSegments(entries: readonly Entry[], bytesMax: SegmentStorage['bytesMax']): Entry[][] {
  const size = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  const segments: Entry[][] = []
  let segment: Entry[] = []
  let filled = 0
  let bound = 0
  for (const entry of entries) {
    // A segment never mixes kinds: the index can then be rebuilt even if connections cannot be read.
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
