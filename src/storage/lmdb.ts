/**
 * The store on LMDB: one file, memory-mapped, one writer at a time among all processes of the machine.
 * Settings follow what was measured of lmdb-js 3.5 on Bun; each says why.
 */

import * as lmdb from 'lmdb'
import { ABORT, type Database, open, type RootDatabase, type Transaction } from 'lmdb'
import { editRuns, Run, runSeparator } from './runs.ts'
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

/** Entries whose keys begin with this byte are kept in runs (`runs.ts`): connections, which are read by the page. */
const inRunsByDefault = 'c'.charCodeAt(0)

/** Opens the store in a folder, creating it. Throws StoreError `fatal` with a line that says what to do. */
export function openLmdbStore(folder: string, inRuns = inRunsByDefault): Store {
  let root: RootDatabase
  let data: Bytes
  let runs: Bytes
  let visitRuns: RunVisitor
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
    runs = root.openDB({ name: 'runs', encoding: 'binary', keyEncoder } as never)
    visitRuns = openRunVisitor(root)
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

  /** The least keys that begin with the byte of runs, and with the byte after it. */
  const runsFrom = Buffer.of(inRuns)
  const runsTo = Buffer.of(inRuns + 1)
  const isInRuns = (key: Key) => key[0] === inRuns

  function find(key: Key, transaction?: Transaction): Uint8Array | undefined {
    if (!isInRuns(key)) return data.get(key, transaction === undefined ? {} : { transaction })
    let value: Uint8Array | undefined
    visitRuns.atOrBefore(key, transaction, (run) => {
      const at = run.seek(key)
      if (at < run.count && run.compare(at, key) === 0) value = run.value(at)
    })
    return value
  }

  /**
   * Walks a range, the part in runs too. `entry` gets each entry that is wanted, in order, lent for the
   * call; the walk ends after `limit` of them, and says whether there was one more.
   */
  function walk(
    { gte, lt, limit }: Range,
    transaction: Transaction,
    values: boolean,
    entry: (key: Key, value: Uint8Array) => void,
  ): boolean {
    let left = limit
    const plain = (from: Key, to: Key): boolean => {
      if (Buffer.compare(from, to) >= 0) return false
      const options = { start: from, end: to, limit: left + 1, transaction }
      if (values) {
        for (const { key, value } of data.getRange(options)) {
          if (left === 0) return true
          left -= 1
          entry(key, value)
        }
      } else {
        for (const key of data.getKeys(options)) {
          if (left === 0) return true
          left -= 1
          entry(key, nothing)
        }
      }
      return false
    }
    const packed = (from: Key, to: Key): boolean => {
      if (Buffer.compare(from, to) >= 0) return false
      let more = false
      visitRuns.from(from, to, transaction, (run) => {
        for (let at = run.seek(from); at < run.count; at += 1) {
          if (run.compare(at, to) >= 0) return 'stop'
          if (left === 0) {
            more = true
            return 'stop'
          }
          left -= 1
          entry(run.key(at), values ? run.value(at) : nothing)
        }
        return 'go on'
      })
      return more
    }
    return (
      plain(gte, least(lt, runsFrom)) || packed(most(gte, runsFrom), least(lt, runsTo)) || plain(most(gte, runsTo), lt)
    )
  }

  /** Inside a transaction. Nothing is written before every check has been looked at. */
  function apply(write: Write): readonly Key[] {
    const conflicts: Key[] = []
    for (const { key, value } of write.checks ?? []) {
      if (!sameBytes(find(key), value)) conflicts.push(key)
    }
    if (conflicts.length > 0) return conflicts
    const editor = editRuns({
      atOrBefore(key) {
        for (const entry of runs.getRange({ start: key, reverse: true, limit: 1 })) return entry
        return undefined
      },
      keyAfter(key) {
        for (const after of runs.getKeys({ start: Buffer.concat([key, Buffer.of(0)]), limit: 1 })) return after
        return undefined
      },
      put: (key, value) => void runs.put(key, value),
      remove: (key) => void runs.remove(key),
    })
    for (const key of write.deletes ?? []) {
      checkKey(key)
      if (isInRuns(key)) editor.remove(key)
      else data.remove(key)
    }
    for (const entry of write.puts ?? []) {
      checkKey(entry.key)
      if (isInRuns(entry.key)) editor.put(entry)
      else data.put(entry.key, entry.value)
    }
    editor.flush()
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

  let page = Buffer.allocUnsafe(128 * 1024)

  /** The pieces of some runs, one after the other, in a buffer that the next join overwrites. */
  function joinRuns({ gte, lt, limit }: Range, transaction: Transaction): Joined {
    let filled = 0
    let count = 0
    let last: Key | undefined
    let more = false
    visitRuns.from(gte, lt, transaction, (run) => {
      const start = run.seek(gte)
      const end = run.compare(run.count - 1, lt) < 0 ? run.count : run.seek(lt)
      const taken = Math.min(end - start, limit - count)
      if (taken > 0) {
        const length = run.valuesLength(start, start + taken)
        if (filled + length + 1 > page.length) {
          const larger = Buffer.allocUnsafe((filled + length + 1) * 2)
          page.copy(larger, 0, 0, filled)
          page = larger
        }
        if (count > 0) {
          page[filled] = runSeparator
          filled += 1
        }
        run.copyValues(start, start + taken, page, filled)
        filled += length
        count += taken
        last = run.key(start + taken - 1)
      }
      more = end - start > taken
      return more || end < run.count ? 'stop' : 'go on'
    })
    return { bytes: page.subarray(0, filled), count, last, more }
  }

  return {
    async get(key) {
      return read((transaction) => find(key, transaction))
    },
    async getMany(keys) {
      return read((transaction) => keys.map((key) => find(key, transaction)))
    },
    async range(range) {
      return read((transaction) => {
        const entries: Entry[] = []
        const more = walk(range, transaction, true, (key, value) => entries.push({ key, value }))
        return { entries, more }
      })
    },
    async keys(range) {
      return read((transaction) => {
        const keys: Key[] = []
        const more = walk(range, transaction, false, (key) => keys.push(key))
        return { keys, more }
      })
    },
    async join(range, use) {
      return read((transaction) => {
        const isAllInRuns = Buffer.compare(range.gte, runsFrom) >= 0 && Buffer.compare(range.lt, runsTo) <= 0
        if (isAllInRuns) return use(joinRuns(range, transaction))
        const values: Uint8Array[] = []
        let last: Key | undefined
        const more = walk(range, transaction, true, (key, value) => {
          values.push(value)
          last = key
        })
        const parts = values.flatMap((value, index) => (index === 0 ? [value] : [separator, value]))
        return use({ bytes: Buffer.concat(parts), count: values.length, last, more })
      })
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

const nothing = new Uint8Array(0)
const separator = Buffer.of(runSeparator)

function least(a: Key, b: Key): Key {
  return Buffer.compare(a, b) <= 0 ? a : b
}

function most(a: Key, b: Key): Key {
  return Buffer.compare(a, b) >= 0 ? a : b
}

type Visit = (run: Run) => 'go on' | 'stop' | undefined | void

interface RunVisitor {
  /** The run under the greatest key that is `key` or comes before it, if there is one. */
  atOrBefore(key: Key, transaction: Transaction | undefined, visit: Visit): void
  /** The runs that may hold keys from `gte` to before `lt`, in order. */
  from(gte: Key, lt: Key, transaction: Transaction, visit: Visit): void
}

/**
 * Shows runs where lmdb-js has them, without a copy: it decodes values through its `encoder`, and this one
 * hands over the bytes it is given. They are valid until the next step.
 */
function openRunVisitor(root: RootDatabase): RunVisitor {
  let current: Run | undefined
  const encoder = {
    encode: (value: Uint8Array) => value,
    decode(bytes: Buffer): true {
      current = new Run(bytes)
      return true
    },
  }
  const runs: Bytes = root.openDB({ name: 'runs', encoder, keyEncoder } as never)
  Object.assign(runs, { decoderCopies: true })

  function visitRange(options: object, visit: Visit): boolean {
    const steps = runs.getRange(options as never)[Symbol.iterator]()
    let seen = false
    while (steps.next().done !== true) {
      seen = true
      if (current !== undefined && visit(current) === 'stop') {
        steps.return?.()
        break
      }
    }
    return seen
  }

  return {
    atOrBefore(key, transaction, visit) {
      visitRange({ start: key, reverse: true, limit: 1, ...(transaction && { transaction }) }, visit)
    },
    from(gte, lt, transaction, visit) {
      let first: Key | undefined
      for (const key of runs.getKeys({ start: gte, reverse: true, limit: 1, transaction })) first = key
      visitRange({ start: first ?? gte, end: lt, transaction }, visit)
    },
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
