/**
 * The store on LMDB: one file, memory-mapped, one writer at a time among all processes of the machine.
 * Settings follow what was measured of lmdb-js 3.5 on Bun; each says why.
 */

import * as lmdb from 'lmdb'
import { ABORT, type Database, open, type RootDatabase, type Transaction } from 'lmdb'
import {
  type Committed,
  checkKey,
  type Entry,
  type Joined,
  type Key,
  type Range,
  type Store,
  StoreError,
  sameBytes,
  type Write,
} from './store.ts'

/** Keys are our own bytes. lmdb-js compares past the end of a key, so eight zero bytes follow each. */
const keyEncoder = {
  writeKey(key: Key, target: Buffer, start: number): number {
    target.set(key, start)
    const end = start + key.length
    target.fill(0, end, end + 8)
    return end
  },
  readKey(source: Buffer, start: number, end: number): Key {
    return Uint8Array.prototype.slice.call(source, start, end)
  },
}

type Bytes = Database<Uint8Array, Key>

/** Opens the store in a folder, creating it. Throws StoreError `fatal` with a line that says what to do. */
export function openLmdbStore(folder: string): Store {
  let root: RootDatabase
  let data: Bytes
  let joiner: Joiner
  try {
    root = open({
      path: folder,
      // With overlapping syncs, killing one of two writing processes lost acknowledged writes of the other.
      overlappingSync: false,
      // One sparse mapping, so that growth never needs a second; costs address space only.
      mapSize: 64 * 2 ** 30,
      maxReaders: 512,
      // Unused bytes of a page may hold old data of this same file: nothing is gained by clearing them.
      noMemInit: true,
      maxDbs: 4,
    })
    data = root.openDB({ name: 'postern', encoding: 'binary', keyEncoder } as never)
    joiner = openJoiner(root)
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    throw new StoreError('fatal', `cannot open the store in ${folder}: ${detail}`, { cause: error })
  }

  /**
   * Reads in a snapshot of its own, given back at once: the next read sees what any process has committed
   * since, and no page of the file is held while nobody reads. lmdb-js's own snapshot lasts to the end of
   * the turn, and taking a new one sooner costs a timer each time.
   */
  const reader = root.useReadTransaction() as Transaction & { readonly address: number }
  const giveBack = () => nativeAddon.resetTxn(reader.address)
  giveBack()
  function read<T>(work: (transaction: Transaction) => T): T {
    try {
      return work(reader)
    } finally {
      giveBack()
    }
  }

  /** Inside a transaction. Nothing is written before every check and key has been looked at. */
  function apply(write: Write): readonly Key[] {
    const conflicts: Key[] = []
    for (const { key, value } of write.checks ?? []) {
      if (!sameBytes(data.getBinary(key), value)) conflicts.push(key)
    }
    if (conflicts.length > 0) return conflicts
    for (const key of write.deletes ?? []) {
      checkKey(key)
      data.remove(key)
    }
    for (const { key, value } of write.puts ?? []) {
      checkKey(key)
      data.put(key, value)
    }
    return []
  }

  function write(run: (work: () => symbol | number | undefined) => unknown, write: Write): unknown {
    let conflicts: readonly Key[] = []
    let failure: unknown
    const work = () => {
      try {
        conflicts = apply(write)
      } catch (error) {
        failure = error
      }
      // A throw inside a transaction would commit what came before it; this takes everything back.
      return conflicts.length > 0 || failure !== undefined ? (ABORT as unknown as symbol) : undefined
    }
    const outcome = (): Committed => {
      if (failure !== undefined) throw failure
      return conflicts.length > 0 ? { ok: false, conflicts } : { ok: true }
    }
    const done = run(work)
    return done instanceof Promise ? done.then(outcome) : outcome()
  }

  return {
    async get(key) {
      return read((transaction) => data.get(key, { transaction }))
    },
    async getMany(keys) {
      return read((transaction) => keys.map((key) => data.get(key, { transaction })))
    },
    async range({ gte, lt, limit }: Range) {
      return read((transaction) => {
        const entries: Entry[] = []
        for (const entry of data.getRange({ start: gte, end: lt, limit: limit + 1, transaction })) entries.push(entry)
        const more = entries.length > limit
        if (more) entries.pop()
        return { entries, more }
      })
    },
    async keys({ gte, lt, limit }: Range) {
      return read((transaction) => {
        const keys: Key[] = []
        for (const key of data.getKeys({ start: gte, end: lt, limit: limit + 1, transaction })) keys.push(key)
        const more = keys.length > limit
        if (more) keys.pop()
        return { keys, more }
      })
    },
    async join(range, separator, use) {
      return read((transaction) => joiner(range, separator, transaction, use))
    },
    async commit(batch) {
      try {
        return (await write((work) => root.childTransaction(work as never), batch)) as Committed
      } catch (error) {
        throw await asStoreError(error)
      }
    },
    async load(batch) {
      try {
        return write((work) => root.transactionSync(work as never), batch) as Committed
      } catch (error) {
        throw await asStoreError(error)
      }
    },
    async close() {
      reader.done()
      await root.close()
    },
  }
}

type Joiner = <T>(range: Range, separator: number, transaction: Transaction, use: (joined: Joined) => T) => T

/**
 * A page of a hundred rows is answered as stored, so its values go from the map into one buffer, without
 * an object, a key or a copy of its own for each. lmdb-js decodes values through its `encoder`; this one
 * appends what it is given. The buffer is the same for every join: `use` is done with it when it returns.
 */
function openJoiner(root: RootDatabase): Joiner {
  let page = Buffer.allocUnsafe(128 * 1024)
  let filled = 0
  let separatorByte = 0
  let keySource: Buffer | undefined
  let keyEnd = 0

  const encoder = {
    encode: (value: Uint8Array) => value,
    /** `bytes` is lmdb-js's own buffer: valid until the next value, `length` of it meant. */
    decode(bytes: Buffer, length: number): number {
      if (filled + length + 1 > page.length) {
        const larger = Buffer.allocUnsafe(Math.max(page.length * 2, filled + length + 1))
        page.copy(larger, 0, 0, filled)
        page = larger
      }
      bytes.copy(page, filled, 0, length)
      filled += length
      page[filled] = separatorByte
      filled += 1
      return length
    },
  }
  const lastKey = {
    ...keyEncoder,
    readKey(source: Buffer, _start: number, end: number): undefined {
      keySource = source
      keyEnd = end
    },
  }
  const values: Bytes = root.openDB({ name: 'postern', encoder, keyEncoder: lastKey } as never)
  Object.assign(values, { decoderCopies: true })

  /** Where lmdb-js has the key of the value it gave last. */
  function copyKey(): Key {
    return Uint8Array.prototype.slice.call(keySource, 32, keyEnd)
  }

  return ({ gte, lt, limit }, separator, transaction, use) => {
    filled = 0
    separatorByte = separator
    const rows = values.getRange({ start: gte, end: lt, limit: limit + 1, transaction })[Symbol.iterator]()
    let count = 0
    let last: Key | undefined
    let more = false
    let end = 0
    while (rows.next().done !== true) {
      // A value past the page has been appended before it is known to be past: `end` leaves it out.
      if (count === limit) {
        more = true
        rows.return?.()
        break
      }
      count += 1
      end = filled
      // The next step overwrites the key; only the last one is wanted.
      if (count === limit) last = copyKey()
    }
    if (count > 0 && count < limit) last = copyKey()
    return use({ bytes: page.subarray(0, Math.max(0, end - 1)), count, last, more })
  }
}

/** Part of lmdb that its types leave out. */
const { nativeAddon } = lmdb as unknown as { nativeAddon: { resetTxn(address: number): void } }

/** lmdb-js reports a failed commit as `Commit failed`, with the cause on a promise of its own. */
async function asStoreError(error: unknown): Promise<Error> {
  if (error instanceof StoreError || !(error instanceof Error)) return error as Error
  const { commitError } = error as { commitError?: Promise<unknown> }
  const cause = await Promise.resolve(commitError).catch((reason: unknown) => reason)
  const detail = cause instanceof Error ? cause.message : error.message
  return new StoreError('unavailable', `the store could not write: ${detail}`, { cause: error })
}
