/**
 * The store on LMDB: one file, memory-mapped, one writer at a time among all processes of the machine.
 * Settings follow what was measured of lmdb-js 3.5 on Bun; each says why.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../errors.ts'
import { freeBytesMin, reservedBytesMin } from '../../limits.ts'
import {
  type Committed,
  type ConcatenatedValues,
  checkKey,
  concatenate,
  concatenatedIn,
  copyBytes,
  countedAll,
  type Entry,
  type Key,
  type LocalReads,
  type Range,
  type Store,
  StoreError,
  sameBytes,
  type Write,
  wrapBytesMax,
} from '../store.ts'
import { appendChecksum, checked, noKey } from './checksum.ts'
import { openCommitCount } from './commit-count.ts'
import { checkFile } from './file-check.ts'
import { freeBytes, requireFreeSpace } from './free-space.ts'
import { openRecords, type Upgrading } from './migrations.ts'
import { abort, type Bytes, openRoot, type Root } from './root.ts'
import { openSegmentReader, type SegmentReader, type Take } from './segment-reader.ts'
import { editSegments, packedKinds, type Runs } from './segments.ts'

/**
 * Opens the store in a folder, creating it. Throws StoreError `fatal` with a line that says what to do, and the
 * CommandError that `upgrading` throws. `free` tells the room on its disk.
 */
export function openLmdbStore(
  folder: string,
  inRuns: Runs = packedKinds,
  upgrading?: Upgrading,
  free = freeBytes,
): Store {
  checkFile(join(folder, 'data.mdb'))
  let root: Root
  let data: Bytes
  let runs: Bytes
  let packed: SegmentReader
  let commitCount: LocalReads['commitCount']
  try {
    mkdirSync(folder, { recursive: true })
    commitCount = openCommitCount(folder)
    root = openRoot(folder)
    ;({ data, runs } = openRecords(root, upgrading))
    packed = openSegmentReader(root)
  } catch (error) {
    if (error instanceof CommandError) throw error
    const detail = error instanceof Error ? error.message : String(error)
    throw new StoreError('fatal', `cannot open the store in ${folder}: ${detail}`, { cause: error })
  }

  let snapshotCount: number | undefined
  /**
   * lmdb-js takes a snapshot at the first read of a turn of the event loop and gives it back at its end.
   * One that was taken before the last commit, of any process, is given back at once.
   */
  function read<T>(work: () => T): T {
    const current = commitCount()
    if (current === undefined || current !== snapshotCount) root.resetReadTxn()
    snapshotCount = current
    return work()
  }

  const segmentBytes = new Map(Object.entries(inRuns).map(([letter, bytes]) => [letter.charCodeAt(0), bytes]))
  const isPacked = (key: Key) => segmentBytes.has(key[0] ?? 0)

  function find(key: Key): Uint8Array | undefined {
    if (isPacked(key)) return packed.getMany([key])[0]
    // Its own bytes, looked at where they lie; `get` would copy them first.
    const bytes = data.getBinaryFast(key)
    return bytes === undefined ? undefined : copyBytes(checked(key, bytes))
  }

  /** Gives the entries of a range to `take`, before, in and after the runs. Resolves whether there are more. */
  function walk(range: Range, kind: 'entries' | 'keys', take: Take): boolean {
    const { gte, lt } = range
    let left = range.limit
    const counted: Take = (key, value) => {
      left -= 1
      take(key, value)
    }
    const part = (from: Key, to: Key, read: typeof packed.walk): boolean =>
      Buffer.compare(from, to) < 0 && read({ gte: from, lt: to, limit: left }, kind, counted)
    // The range falls into parts that are in runs and parts that are not, in turn.
    let from = gte
    for (const letter of [...segmentBytes.keys()].sort((a, b) => a - b)) {
      const begin = Buffer.of(letter)
      const end = Buffer.of(letter + 1)
      if (part(from, least(lt, begin), walkPlain) || part(most(from, begin), least(lt, end), packed.walk)) return true
      from = most(from, end)
    }
    return part(from, lt, walkPlain)
  }

  function walkPlain({ gte, lt, limit }: Range, kind: 'entries' | 'keys', take: Take): boolean {
    const options = { start: gte, end: lt, limit: limit + 1 }
    let taken = 0
    if (kind === 'keys') {
      for (const key of data.getKeys(options)) {
        if (taken === limit) return true
        taken += 1
        take(key, nothing)
      }
    } else {
      for (const { key, value } of data.getRange(options)) {
        if (taken === limit) return true
        taken += 1
        take(key, checked(key, value))
      }
    }
    return false
  }

  /** Inside a transaction. Nothing is written before every check and count has been looked at. */
  function apply(write: Write): Committed {
    const conflicts: Key[] = []
    for (const { key, value } of write.checks ?? []) {
      if (!sameBytes(find(key), value)) conflicts.push(key)
    }
    const { entries: counts, full } = countedAll(conflicts.length > 0 ? [] : (write.counts ?? []), find)
    if (conflicts.length + full.length > 0) return { ok: false, conflicts, full }
    // Pages are rarely full, and a run ends somewhere in its last one.
    let bytes = 0
    const weighed = (key: Key, value: Uint8Array): Uint8Array => {
      bytes += value.length * 1.5 + keyBytesAbout
      return appendChecksum(key, value)
    }
    const editor = editSegments({
      bytesMax: (key) => segmentBytes.get(key[0] ?? 0) ?? 0,
      atOrAfter(key) {
        for (const entry of runs.getRange({ start: key, limit: 1 }))
          return { ...entry, value: checked(noKey, entry.value) }
        return undefined
      },
      keyBefore(key) {
        const from = key === undefined ? {} : { start: key, exclusiveStart: true }
        for (const before of runs.getKeys({ ...from, reverse: true, limit: 1 } as never)) return before
        return undefined
      },
      put: (key, value) => void runs.put(key, weighed(noKey, value)),
      remove: (key) => void runs.remove(key),
    })
    for (const key of write.deletes ?? []) {
      checkKey(key)
      if (isPacked(key)) editor.remove(key)
      else data.remove(key)
    }
    for (const { key, value } of counts) {
      if (value.length === 0) data.remove(key)
      else data.put(key, weighed(key, value))
    }
    for (const entry of write.puts ?? []) {
      checkKey(entry.key)
      if (isPacked(entry.key)) editor.put(entry)
      else data.put(entry.key, weighed(entry.key, entry.value))
    }
    editor.flush()
    requireFreeSpace(folder, bytes, write.fromReserve === true ? reservedBytesMin : freeBytesMin, free)
    return { ok: true }
  }

  function write(run: (work: () => symbol | number | undefined) => unknown, write: Write): unknown {
    let committed: Committed = { ok: true }
    let failure: unknown
    const work = () => {
      try {
        committed = apply(write)
      } catch (error) {
        failure = error
      }
      // A throw inside a transaction would commit what came before it; this takes everything back.
      return !committed.ok || failure !== undefined ? abort() : undefined
    }
    const outcome = (): Committed => {
      if (failure !== undefined) throw failure
      return committed
    }
    const done = run(work)
    return done instanceof Promise ? done.then(outcome) : outcome()
  }

  /** In a borrowed buffer where the range is of one packed kind. */
  function concatValues(range: Range): ConcatenatedValues {
    if (isPacked(range.gte) && range.lt[0] === range.gte[0]) return packed.concatValues(range)
    const values: Uint8Array[] = []
    let last: Key | undefined
    const more = walk(range, 'entries', (key, value) => {
      values.push(value)
      last = key
    })
    return concatenate(values, more ? last : undefined)
  }

  return {
    get: async (key) => read(() => find(key)),
    getMany: async (keys) => read(() => (keys.every(isPacked) ? packed.getMany(keys) : keys.map(find))),
    range: async (range) =>
      read(() => {
        const entries: Entry[] = []
        const more = walk(range, 'entries', (key, value) => entries.push({ key, value }))
        return { entries, more }
      }),
    keys: async (range) =>
      read(() => {
        const keys: Key[] = []
        const more = walk(range, 'keys', (key) => keys.push(key))
        return { keys, more }
      }),
    concatValues: async (range) => copyOfValues(read(() => concatValues(range))),
    local: {
      get: (key) => read(() => find(key)),
      concatValues: (range, use) => read(() => use(concatValues(range))),
      commitCount,
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
      await root.close()
    },
  }
}

/** In a buffer of its own. */
function copyOfValues({ count, lastKeyIfMore, wrap }: ConcatenatedValues): ConcatenatedValues {
  const edge = ' '.repeat(wrapBytesMax)
  const copy = copyBytes(wrap(edge, edge))
  return concatenatedIn(copy, wrapBytesMax, copy.length - wrapBytesMax, { count, lastKeyIfMore })
}

const nothing = new Uint8Array(0)
const keyBytesAbout = 100

function least(a: Key, b: Key): Key {
  return Buffer.compare(a, b) <= 0 ? a : b
}

function most(a: Key, b: Key): Key {
  return Buffer.compare(a, b) >= 0 ? a : b
}

/** lmdb-js reports a failed commit as `Commit failed`, with the cause on a promise of its own. */
async function asStoreError(error: unknown): Promise<Error> {
  if (error instanceof StoreError || !(error instanceof Error)) return error as Error
  const { commitError } = error as { commitError?: Promise<unknown> }
  const cause = await Promise.resolve(commitError).catch((reason: unknown) => reason)
  const detail = cause instanceof Error ? cause.message : error.message
  return new StoreError('unavailable', `the store could not write: ${detail}`, { cause: error })
}
