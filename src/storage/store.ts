/**
 * The storage contract: an ordered map from bytes to bytes with atomic writes. Features, authorization and the fast
 * lane know only this contract; `test/storage/conformance.ts` checks every engine against it. The code that opens,
 * checks and saves a data folder (`cli/`, `maintenance/`) knows LMDB too.
 *
 * Promises. A commit is atomic and serializable, including its checks, and durable when it resolves. A read sees every
 * commit acknowledged before the read began, by any process. One range is one snapshot; two reads may be two snapshots.
 * There are no open transactions and no callbacks inside one, so an engine may run on another machine.
 */

import { storeKeyBytesMax } from '../limits.ts'

/** 1 to 1,024 bytes, ordered as unsigned bytes. A key sorts before every longer key that begins with it. */
export type Key = Uint8Array

/** The caller owns what a read returns. Keys and values that a write is given must not change until it resolves. */
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

/** The write happens only if the key still holds exactly this value; null: only if it holds nothing. */
export interface Check {
  readonly key: Key
  readonly value: Uint8Array | null
}

/**
 * Adds to integers stored as decimals separated by spaces. If all become 0, the key is deleted. Counts do not conflict:
 * concurrent writers need neither a check nor a retry. With `most`, the write is refused if a number that it raises
 * would exceed its bound; lowering a number is never refused.
 */
export interface Count {
  readonly key: Key
  readonly add: readonly number[]
  readonly most?: readonly number[]
}

/** Somebody who holds a part of what is shared: an API key or a token, as `Caller` has it, a ticket, or a stranger. */
export interface Holder {
  /** The id of the API key. */
  readonly keyId: string
  /** The id of the first token of the family, or of the API key if it is used directly. */
  readonly family: string
  /** The user of the key; `organization:ID` for an organization's. Left out where there is no user. */
  readonly userId?: string
}

/** Deletes are applied before puts. If `puts` contains a key twice, the last one wins. */
export interface Write {
  readonly checks?: readonly Check[]
  /** At most one count for each key, and no put or delete of the same key. */
  readonly counts?: readonly Count[]
  readonly puts?: Iterable<Entry>
  readonly deletes?: Iterable<Key>
  /** May use disk space that is kept for writes that take access away: a revocation all of it, a deletion a part. */
  readonly fromReserve?: 'revocation' | 'deletion' | undefined
  /** On whose behalf it is, where many may be: each has its part of the reserved space. */
  readonly holder?: Holder | undefined
}

/** If not `ok`, nothing was written: a check failed (`conflicts`), or else a count would pass its bound (`full`). */
export type Committed =
  | { readonly ok: true }
  | { readonly ok: false; readonly conflicts: readonly Key[]; readonly full: readonly Key[] }

/** An open store. The `kind` of a StoreError tells the caller what it can do. */
export interface Store {
  /** The value, or undefined if the key holds nothing. */
  get(key: Key): Promise<Uint8Array | undefined>
  /** The values in the order of `keys`, from one snapshot. */
  getMany(keys: readonly Key[]): Promise<(Uint8Array | undefined)[]>
  /** Up to `limit` entries. `more`: the range has further entries after the last one returned. */
  range(range: Range): Promise<{ readonly entries: readonly Entry[]; readonly more: boolean }>
  /** Like `range`, without the values. */
  keys(range: Range): Promise<{ readonly keys: readonly Key[]; readonly more: boolean }>
  /**
   * The values of a range, joined by commas in one buffer, and the value of one more key from the same snapshot. For
   * records whose stored JSON is the response, with the version that they belong to.
   */
  concatValues(range: Range, beside?: Key): Promise<ConcatenatedValues & { readonly beside: Uint8Array | undefined }>
  /** A small write. Resolves when it is durable. Concurrent commits share a disk flush if the engine can do that. */
  commit(write: Write): Promise<Committed>
  /** `commit` for any size. Consumes `puts` and `deletes` on the way. May block others: for start-up and commands. */
  load(write: Write): Promise<Committed>
  /** Each read is a round trip to another machine, so that few large ones are better than many small ones. */
  readonly isRemote?: boolean
  /** Present if the engine runs in this process. Code that uses it must also work without it. */
  readonly local?: LocalReads
  /** Resolves if reads and writes work now. Throws StoreError, whose message is for the operator. */
  health(): Promise<Health>
  /** No read or write may follow: it rejects, or throws for `local`. */
  close(): Promise<void>
}

export interface Health {
  /** The bytes that it takes on disk. */
  readonly bytes: number
  /** `replicated`: acknowledged commits are on another machine too. */
  readonly durability: 'local' | 'replicated'
  /** Milliseconds by which the clock that all processes share is ahead of this machine's. */
  readonly clockOffsetMs: number
  /** The host that is written to, with its timeline, if the store is a database. */
  readonly primary?: { readonly name: string; readonly timeline: number }
}

/** Synchronous reads, with the promises of the asynchronous ones. Only `fast-lane/` uses them. */
export interface LocalReads {
  get(key: Key): Uint8Array | undefined
  /** Borrowed until `use` returns, which must not await. Undefined past `bytesMax` bytes; few more are read. */
  concatValues<T>(range: Range, bytesMax: number, use: (values: ConcatenatedValues) => T): T | undefined
  /**
   * A number that changes with every commit, by any process. Undefined if the engine cannot tell. Costs about 0.1 µs. A
   * result is still current if the number read before it is unchanged.
   */
  commitCount(): number | undefined
}

/** Values of a range, joined by commas. */
export interface ConcatenatedValues {
  readonly count: number
  /** The key of the last value if the range has further entries, otherwise undefined. */
  readonly lastKeyIfMore: Key | undefined
  /**
   * The joined values between `prefix` and `suffix` (ASCII, at most `wrapBytesMax` characters each). Both are written
   * into the free space around the values, because copying a page again costs more than finding it.
   */
  wrap(prefix: string, suffix: string): Uint8Array<ArrayBuffer>
}

/**
 * `unavailable`: nothing was written, try again later (full disk, failed engine). `indeterminate`: whether the write
 * was done is not known, and will not be: read before you repeat it. `too_large`: a key out of bounds. `damaged`: a
 * value does not match its checksum. `fatal`: the store cannot be used; the message is one line for the operator.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly kind: 'unavailable' | 'indeterminate' | 'too_large' | 'damaged' | 'fatal'

  constructor(kind: StoreError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Throws StoreError `too_large` for an empty key and for a key longer than `storeKeyBytesMax`. */
export function checkKey(key: Key): void {
  if (key.length === 0 || key.length > storeKeyBytesMax) {
    throw new StoreError(
      'too_large',
      `the ids in this record take ${key.length} bytes together, and at most ${storeKeyBytesMax} can be stored: use shorter ids`,
    )
  }
}
