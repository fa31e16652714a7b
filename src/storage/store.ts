/**
 * The storage contract: an ordered map from bytes to bytes with atomic writes. Nothing above it knows
 * which engine runs; `test/storage/conformance.ts` holds every engine to it.
 *
 * Promises. A commit is atomic and serializable, its checks included, and durable when it resolves.
 * A read sees every commit acknowledged before it began, by whichever process. One range is one
 * snapshot; several reads are not. There are no open transactions and no callbacks inside one, so that
 * an engine may stand on another machine.
 */

import { storeKeyBytesMax } from '../limits.ts'

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

/** Deletes are applied before puts. The same key twice in `puts`: the last one stays. */
export interface Write {
  readonly checks?: readonly Check[]
  readonly puts?: Iterable<Entry>
  readonly deletes?: Iterable<Key>
}

export type Committed = { readonly ok: true } | { readonly ok: false; readonly conflicts: readonly Key[] }

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
   * The values of a range with commas between them, in one buffer: for records that are answered as they
   * are stored. The buffer is lent: it is the caller's until `use` returns, which must not await.
   */
  join<T>(range: Range, use: (joined: Joined) => T): Promise<T>
  /** Some writes, for a request: resolves when durable. Concurrent commits share a disk flush where the engine can. */
  commit(write: Write): Promise<Committed>
  /** The same promise for a write of any size, made as it is consumed: may hold up the process, so for start-up. */
  load(write: Write): Promise<Committed>
  /** Reads and writes after it throw. */
  close(): Promise<void>
}

export interface Joined {
  readonly bytes: Uint8Array
  readonly count: number
  /** Where the range holds more: the key of the last value taken. */
  readonly moreAfter: Key | undefined
}

/**
 * `unavailable`: nothing was written, try later (a full disk, a lost engine). `too_large`: a key or value
 * past the bounds. `fatal`: the store cannot be used, and says why in one line.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly kind: 'unavailable' | 'too_large' | 'fatal'

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

export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | null): boolean {
  return a === undefined || b === null ? a === undefined && b === null : Buffer.compare(a, b) === 0
}

/** Values with commas between them, as `join` gives them. */
export function joinValues(values: readonly Uint8Array[]): Buffer {
  return Buffer.concat(values.flatMap((value, index) => (index === 0 ? [value] : [commaBytes, value])))
}
export const comma = 0x2c
const commaBytes = Buffer.of(comma)

/** The same memory as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** A copy that shares nothing: a Buffer's own `slice` would be a view of the same memory. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes)
}
