/**
 * The storage contract: an ordered map from bytes to bytes with atomic writes. Nothing above it knows
 * which engine runs; `test/storage/conformance.ts` holds every engine to it.
 *
 * Promises. A commit is atomic and serializable, its checks included, and durable when it resolves.
 * A read sees every commit acknowledged before it began, by whichever process. One range is one
 * snapshot; several reads are not. There are no open transactions and no callbacks inside one, so that
 * an engine may stand on another machine.
 */

import { storeKeyBytesMax, wrapBytesMax } from '../limits.ts'

/** 1 to 1,024 bytes; ordered by unsigned bytes, a prefix before what it begins. */
export type Key = Uint8Array

/** Keys and values that come out are the caller's to keep; what goes in must not change until the call resolves. */
export interface Entry {
  readonly key: Key
  readonly value: Uint8Array
}

/** Keys from `gte` (included) to `lt` (excluded), ascending, at most `limit`. */
export interface Range {
  readonly gte: Key
  readonly lt: Key
  readonly limit: number
}

/** The write happens only if the key still holds exactly this; null: only if it holds nothing. */
export interface Check {
  readonly key: Key
  readonly value: Uint8Array | null
}

/**
 * Adds to whole numbers that a key holds, as decimals with a space between them; where all are 0 it holds nothing. So
 * several writers may count at once, and none waits for another. With `most`, the write does not happen when a number
 * that it raises would pass its bound.
 */
export interface Count {
  readonly key: Key
  readonly add: readonly number[]
  readonly most?: readonly number[]
}

/** Deletes are applied before puts. The same key twice in `puts`: the last one stays. */
export interface Write {
  readonly checks?: readonly Check[]
  /** Each of another key, that the rest of the write leaves alone. */
  readonly counts?: readonly Count[]
  readonly puts?: Iterable<Entry>
  readonly deletes?: Iterable<Key>
  /** May use the room on the disk that is kept back for what takes access away. */
  readonly fromReserve?: boolean
}

/** `full`: the checks held, and these counts would have passed their bound. */
export type Committed =
  | { readonly ok: true }
  | { readonly ok: false; readonly conflicts: readonly Key[]; readonly full: readonly Key[] }

export interface Store {
  /** The value, or undefined where the key holds nothing. */
  get(key: Key): Promise<Uint8Array | undefined>
  /** The values in the order of the keys; one snapshot. */
  getMany(keys: readonly Key[]): Promise<(Uint8Array | undefined)[]>
  /** `more`: the range holds entries past the last one returned. */
  range(range: Range): Promise<{ readonly entries: readonly Entry[]; readonly more: boolean }>
  /** The same without the values. */
  keys(range: Range): Promise<{ readonly keys: readonly Key[]; readonly more: boolean }>
  /**
   * The values of a range with commas between them, in one buffer: for records that are answered as they are stored.
   */
  concatValues(range: Range): Promise<ConcatenatedValues>
  /** Some writes, for a request: resolves when durable. Concurrent commits share a disk flush where the engine can. */
  commit(write: Write): Promise<Committed>
  /** The same promise for a write of any size, made as it is consumed: may hold up the process, so for start-up. */
  load(write: Write): Promise<Committed>
  /** Present where the engine is in this process. What uses it must work without it. */
  readonly local?: LocalReads
  /** Reads and writes after it throw. */
  close(): Promise<void>
}

/** Reads that do not wait, with the promises of the others. For `fast-lane/` alone. */
export interface LocalReads {
  get(key: Key): Uint8Array | undefined
  /** The buffer is borrowed: it is valid until `use` returns, which must not await. */
  concatValues<T>(range: Range, use: (values: ConcatenatedValues) => T): T
  /**
   * A number that is another after every commit, by whichever process; undefined where the engine cannot tell. Costs
   * next to nothing. Taken before a read, it says later whether that read still holds.
   */
  commitCount(): number | undefined
}

export interface ConcatenatedValues {
  readonly count: number
  /** The key of the last value, where the range holds more. */
  readonly lastKeyIfMore: Key | undefined
  /**
   * The values with commas between them, and these texts (ASCII, at most `wrapBytesMax` each) around them. Written
   * where the values stand: a second copy of a page costs more than finding it.
   */
  wrap(prefix: string, suffix: string): Uint8Array<ArrayBuffer>
}

/**
 * `unavailable`: nothing was written, try later (a full disk, a lost engine). `too_large`: a key or value
 * past the bounds. `damaged`: a value is not what was written. `fatal`: the store cannot be used, and says why in one
 * line.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly kind: 'unavailable' | 'too_large' | 'damaged' | 'fatal'

  constructor(kind: StoreError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Throws StoreError `too_large` for a key that no engine keeps. */
export function checkKey(key: Key): void {
  if (key.length === 0 || key.length > storeKeyBytesMax) {
    throw new StoreError('too_large', `a key has ${key.length} bytes; 1 to ${storeKeyBytesMax} are kept`)
  }
}

export function equalBytes(a: Uint8Array | undefined, b: Uint8Array | null): boolean {
  return a === undefined || b === null ? a === undefined && b === null : Buffer.compare(a, b) === 0
}

function readCount(value: Uint8Array | undefined): number[] {
  return value === undefined ? [] : asBuffer(value).toString('latin1').split(' ').map(Number)
}

export function countBytes(numbers: readonly number[]): Uint8Array {
  return Buffer.from(numbers.join(' '))
}

/** What the keys of all counts hold after them, nothing where that is empty; `full`: those that would pass a bound. */
export function applyCounts(
  counts: readonly Count[],
  find: (key: Key) => Uint8Array | undefined,
): { readonly entries: readonly Entry[]; readonly full: readonly Key[] } {
  const entries: Entry[] = []
  const full: Key[] = []
  for (const count of counts) {
    checkKey(count.key)
    const value = applyCount(find(count.key), count)
    if (value === undefined) full.push(count.key)
    else entries.push({ key: count.key, value })
  }
  return { entries, full }
}

function applyCount(stored: Uint8Array | undefined, { add, most }: Count): Uint8Array | undefined {
  const before = readCount(stored)
  const after = add.map((number, index) => (before[index] ?? 0) + number)
  const isFull = add.some((number, index) => number > 0 && (after[index] as number) > (most?.[index] ?? Infinity))
  if (isFull) return undefined
  return after.every((number) => number === 0) ? new Uint8Array(0) : countBytes(after)
}

export const comma = 0x2c
/** Of values that stand in a buffer from `start` to `end`, with `wrapBytesMax` free before and after. */
export function concatenatedIn(
  buffer: Buffer<ArrayBuffer>,
  start: number,
  end: number,
  rest: Omit<ConcatenatedValues, 'wrap'>,
): ConcatenatedValues {
  return {
    ...rest,
    wrap(prefix, suffix) {
      const first = start - prefix.length
      buffer.write(prefix, first, 'latin1')
      buffer.write(suffix, end, 'latin1')
      return buffer.subarray(first, end + suffix.length)
    },
  }
}

/** Of values that stand apart, in a buffer of their own. */
export function concatenate(values: readonly Uint8Array[], lastKeyIfMore: Key | undefined): ConcatenatedValues {
  const edge = Buffer.allocUnsafe(wrapBytesMax)
  const parts = values.flatMap((value, index) => (index === 0 ? [value] : [commaBytes, value]))
  const buffer = Buffer.concat([edge, ...parts, edge])
  return concatenatedIn(buffer, edge.length, buffer.length - edge.length, { count: values.length, lastKeyIfMore })
}
const commaBytes = Buffer.of(comma)

/** The same memory as a Buffer, without a copy. Most bytes here are one already, and making one is not free. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * A copy that shares nothing. A Buffer's own `slice` is a view, and Uint8Array's takes three times as long on a
 * Buffer.
 */
export function copyBytes(bytes: Uint8Array, start = 0, end = bytes.length): Buffer<ArrayBuffer> {
  const copy = Buffer.allocUnsafeSlow(end - start)
  asBuffer(bytes).copy(copy, 0, start, end)
  return copy
}
