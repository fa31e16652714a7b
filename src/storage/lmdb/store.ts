/**
 * The store on LMDB: one memory-mapped file, and one writer at a time among all processes on the machine. Settings that
 * differ from lmdb-js's defaults follow measurements of lmdb-js 3.5 on Bun; a comment gives the reason for each.
 */

import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { wrapBytesMax } from '../../limits.ts'
import { copyBytes } from '../bytes.ts'
import { concatenatedIn } from '../concatenated.ts'
import { folderMovedAway, freeBytes, requireFreeSpace } from '../free-space.ts'
import { directoryVersionKey } from '../keys.ts'
import {
  type Committed,
  type ConcatenatedValues,
  type Entry,
  type Key,
  type LocalReads,
  type Store,
  StoreError,
  type Write,
} from '../store.ts'
import { applyWrite, type WriteTarget } from './apply.ts'
import { openCommitCount } from './commit-count.ts'
import { checkFile } from './file-check.ts'
import { openRecords } from './layout.ts'
import { openSharedLock, withLock } from './opening-lock.ts'
import { createRecords } from './records.ts'
import { createReserve } from './reserve.ts'
import { abort, openRoot, type Root } from './root.ts'
import { SegmentReader } from './segment-reader.ts'
import { type PackedKinds, packedKinds } from './segments.ts'

/** Opens the store, and makes it if it is missing. Throws StoreError `fatal`. `free`: the free bytes of the disk. */
export function openLmdbStore(folder: string, kinds: PackedKinds = packedKinds, free = freeBytes): Store {
  const file = join(folder, 'data.mdb')
  checkFile(file)
  const { root, data, segments, packed, commitCount, openingLock } = openParts(folder)
  const openedIno = statSync(file).ino
  const read = upToDate(root, commitCount)
  const records = createRecords(data, packed, kinds)
  const target = { folder, data, segments, records, free, reserve: createReserve() }

  return {
    get: async (key) => read(() => records.find(key)),
    getMany: async (keys) => read(() => records.findMany(keys)),
    range: async (range) =>
      read(() => {
        const entries: Entry[] = []
        const more = records.walk(range, 'entries', (key, value) => entries.push({ key, value }))
        return { entries, more }
      }),
    keys: async (range) =>
      read(() => {
        const keys: Key[] = []
        const more = records.walk(range, 'keys', (key) => keys.push(key))
        return { keys, more }
      }),
    concatValues: async (range, beside) =>
      read(() => ({
        ...copyOfValues(records.concatValues(range, Number.POSITIVE_INFINITY) as ConcatenatedValues),
        beside: beside === undefined ? undefined : records.find(beside),
      })),
    local: {
      get: (key) => read(() => records.find(key)),
      concatValues: (range, bytesMax, use) =>
        read(() => {
          const values = records.concatValues(range, bytesMax)
          return values && use(values)
        }),
      commitCount,
    },
    commit: (batch) =>
      writing(target, batch, (work) => openingLock.run(async () => root.childTransaction(work as never))),
    load: (batch) =>
      writing(target, batch, (work) => withLock(folder, 'write', () => root.transactionSync(work as never))),
    async health() {
      const bytes = bytesOnDisk(file, openedIno)
      read(() => records.find(directoryVersionKey))
      requireFreeSpace(folder, 0, undefined, free)
      return { bytes, durability: 'local', clockOffsetMs: 0 }
    },
    async close() {
      await root.close()
      openingLock.close()
    },
  }
}

/**
 * lmdb-js takes a snapshot at the first read of an event loop turn and releases it at the end of the turn. If any
 * process has committed since, it is released at once, so that a read sees every acknowledged commit.
 */
function upToDate(root: Pick<Root, 'resetReadTxn'>, commitCount: () => number | undefined) {
  let snapshotCount: number | undefined
  return <T>(work: () => T): T => {
    const current = commitCount()
    if (current === undefined || current !== snapshotCount) root.resetReadTxn()
    snapshotCount = current
    return work()
  }
}

function openParts(folder: string) {
  try {
    mkdirSync(folder, { recursive: true })
    const commitCount: LocalReads['commitCount'] = openCommitCount(folder)
    const root = openRoot(folder)
    const records = withLock(folder, 'write', () => openRecords(root))
    const openingLock = openSharedLock(folder)
    return { ...records, root, commitCount, openingLock, packed: new SegmentReader(root) }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    throw new StoreError('fatal', `cannot open the store in ${folder}: ${detail}`, { cause: error })
  }
}

/** Applies a write in a transaction of lmdb-js, which `transact` begins and ends. Throws StoreError. */
async function writing(target: WriteTarget, write: Write, transact: (work: () => unknown) => unknown) {
  let committed: Committed = { ok: true }
  let failure: unknown
  const work = () => {
    try {
      committed = applyWrite(target, write)
    } catch (error) {
      failure = error
    }
    // If the function throws, lmdb-js commits what was written before; returning ABORT rolls back everything.
    return !committed.ok || failure !== undefined ? abort() : undefined
  }
  try {
    await transact(work)
    if (failure !== undefined) throw failure
    return committed
  } catch (error) {
    throw await asStoreError(error)
  }
}

/** Throws StoreError if the file was moved or replaced: what is written to the old one is lost to the next start. */
function bytesOnDisk(file: string, openedIno: number): number {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) throw new StoreError('unavailable', folderMovedAway)
  if (found.ino !== openedIno)
    throw new StoreError('unavailable', 'the data folder was replaced while postern was running: restart postern')
  return found.blocks * 512
}

/** Copies borrowed values into a new buffer. */
function copyOfValues({ count, lastKeyIfMore, wrap }: ConcatenatedValues): ConcatenatedValues {
  const edge = ' '.repeat(wrapBytesMax)
  const copy = copyBytes(wrap(edge, edge))
  return concatenatedIn(copy, wrapBytesMax, copy.length - wrapBytesMax, { count, lastKeyIfMore })
}

/** lmdb-js reports a failed commit as `Commit failed`; the cause is in the promise `commitError`. */
async function asStoreError(error: unknown): Promise<Error> {
  if (error instanceof StoreError || !(error instanceof Error)) return error as Error
  const { commitError } = error as { commitError?: Promise<unknown> }
  const cause = await Promise.resolve(commitError).catch((reason: unknown) => reason)
  const detail = cause instanceof Error ? cause.message : error.message
  return new StoreError('unavailable', `the store could not be written: ${detail}`, { cause: error })
}
