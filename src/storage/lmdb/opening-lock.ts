/**
 * Keeps commits to a store apart from openings of it, in all processes. `mdb_env_open`, as lmdb-js 3.5.6 has it, writes
 * the number of the last transaction into the memory that all processes share, and has read it a moment before (LMDB
 * ITS#9496). A commit in that moment is lost: the next one takes its number and its pages, and who reads meanwhile may
 * crash.
 *
 * The lock is that of an SQLite file, which the runtime brings. Commits share it. Whoever waits to open the store lets
 * no new ones begin, so that it does not wait for ever.
 */

import { Database, type SQLiteError } from 'bun:sqlite'
import { join } from 'node:path'
import { commitsTogetherMs, storeOpeningWaitMs } from '../../limits.ts'
import { StoreError } from '../store.ts'

export const openingLockFile = 'opening.lock'

/** Runs `open` while no process commits. Throws StoreError `unavailable` if one does so for `waitMs`. */
export function whileNobodyCommits<T>(folder: string, open: () => T, waitMs = storeOpeningWaitMs): T {
  return locked(folder, 'BEGIN EXCLUSIVE', open, waitMs)
}

/** Runs a synchronous write while no process opens the store. Throws as `whileNobodyCommits`. */
export function whileNobodyOpens<T>(folder: string, write: () => T, waitMs = storeOpeningWaitMs): T {
  return locked(folder, 'BEGIN', write, waitMs)
}

function locked<T>(folder: string, begin: string, work: () => T, waitMs: number): T {
  const lock = openLock(folder, waitMs, [begin, share])
  try {
    return work()
  } finally {
    // It also ends the transaction.
    lock.close()
  }
}

/**
 * Runs the statements, which wait for other processes. Throws StoreError `unavailable` if they wait too long, and
 * `fatal` for a file that is no lock.
 */
function openLock(folder: string, waitMs: number, statements: readonly string[]): Database {
  const path = join(folder, openingLockFile)
  let lock: Database | undefined
  try {
    lock = new Database(path)
    lock.run(`PRAGMA busy_timeout = ${waitMs}`)
    // Nothing is ever written to it.
    lock.run('PRAGMA journal_mode = MEMORY')
    for (const statement of statements) lock.run(statement)
    return lock
  } catch (error) {
    lock?.close()
    const { code = '', message } = error as SQLiteError
    if (code.startsWith('SQLITE_BUSY')) throw busy(waitMs, error)
    throw new StoreError('fatal', `${path} is not a lock (${message}): delete it; it will be created again`, {
      cause: error,
    })
  }
}

/** A transaction shares the lock from its first read on. */
const share = 'SELECT 1 FROM sqlite_schema'

function busy(waitMs: number, cause?: unknown): StoreError {
  const message = `another process has been opening the store, or writing to it, for ${waitMs / 1000} s`
  return new StoreError('unavailable', message, { cause })
}

/** The commits of a process. Those that are under way at once share one lock. */
export interface Commits {
  /** Runs `commit` while no process opens the store. Rejects with what it throws, and as `whileNobodyCommits`. */
  run<T>(commit: () => Promise<T>): Promise<T>
  close(): void
}

export function openCommits(folder: string): Commits {
  // Reads what is needed to prepare statements on it.
  const lock = openLock(folder, storeOpeningWaitMs, [share])
  const [begin, look, end] = [lock.query('BEGIN'), lock.query(share), lock.query('ROLLBACK')]
  // From here on nothing waits here: requests are answered meanwhile.
  lock.run('PRAGMA busy_timeout = 0')
  let underWay = 0
  /** When the lock was taken that those under way share. */
  let takenAt = 0

  /** Whether commits may begin now. */
  function enter(): boolean {
    // After a while it is let go, or commits without a gap would keep out whoever wants to open.
    if (underWay > 0 && performance.now() - takenAt > commitsTogetherMs) return false
    if (underWay === 0) {
      begin.run()
      try {
        look.get()
      } catch {
        end.run()
        return false
      }
      takenAt = performance.now()
    }
    underWay += 1
    return true
  }

  return {
    async run(commit) {
      const from = performance.now()
      while (!enter()) {
        if (performance.now() - from > storeOpeningWaitMs) throw busy(storeOpeningWaitMs)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      try {
        return await commit()
      } finally {
        underWay -= 1
        if (underWay === 0) end.run()
      }
    },
    close() {
      for (const one of [begin, look, end]) one.finalize()
      lock.close()
    },
  }
}
