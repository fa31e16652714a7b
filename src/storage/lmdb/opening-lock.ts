/**
 * A lock between commits to a store and openings of it, across processes. `mdb_env_open`, as lmdb-js 3.5.6 has it,
 * reads the number of the last transaction, and a moment later writes it to memory that all processes share (LMDB
 * ITS#9496). A commit in between is lost: the next one takes its number and its pages, and a process that reads
 * meanwhile may crash. So commits hold this lock together, and an opening holds it alone.
 *
 * It is the lock of an SQLite file, the only one that the runtime offers. A waiting opening keeps new commits from
 * starting, so it does not wait for ever.
 */

import { Database, type SQLiteError } from 'bun:sqlite'
import { join } from 'node:path'
import { StoreError } from '../store.ts'

/** Ours: milliseconds that the opening of a store waits for commits, and that a commit waits for openings. Past it: an error for the opening, 503 for the commit. */
const storeOpeningWaitMs = 30_000

/** Milliseconds that overlapping commits keep an opening waiting. Past it: new commits wait until it is done. */
const commitsTogetherMs = 100

export const openingLockFile = 'opening.lock'

/**
 * Runs `work`: an `opening` while no process commits, a synchronous `write` while no process opens the store. Throws
 * StoreError `unavailable` after `waitMs`.
 */
export function withLock<T>(folder: string, use: 'opening' | 'write', work: () => T, waitMs = storeOpeningWaitMs): T {
  const lock = openLock(folder, waitMs, [use === 'opening' ? 'BEGIN EXCLUSIVE' : 'BEGIN', readSchema])
  try {
    return work()
  } finally {
    // It also ends the transaction.
    lock.close()
  }
}

/** A transaction shares the lock from its first read on. */
const readSchema = 'SELECT 1 FROM sqlite_schema'

/** Runs the statements, which wait for other processes. Throws StoreError `unavailable`, or `fatal` for a bad file. */
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
    throw lockError(path, waitMs, error as SQLiteError)
  }
}

function lockError(path: string, waitMs: number, cause: SQLiteError): StoreError {
  if (isBusy(cause)) return busy(waitMs, cause)
  const { code = '', message } = cause
  // Under a running process another file would be another lock.
  const text = /^SQLITE_(NOTADB|CORRUPT)/.test(code)
    ? `${path} is not a lock (${message}): stop every postern on this data folder, delete the file, and start again`
    : `${path} cannot be locked: ${message}`
  return new StoreError('fatal', text, { cause })
}

function isBusy({ code = '' }: SQLiteError): boolean {
  return code.startsWith('SQLITE_BUSY')
}

function busy(waitMs: number, cause?: unknown): StoreError {
  const what = `another process has been opening the store, or writing to it, for ${waitMs / 1000} s`
  return new StoreError('unavailable', `${what}: try again when it is done`, { cause })
}

/** The lock as the commits of a process hold it: those that are under way at once hold it together. */
export function openSharedLock(folder: string) {
  // Reads what is needed to prepare statements on it.
  const lock = openLock(folder, storeOpeningWaitMs, [readSchema])
  const [begin, read, end] = [lock.query('BEGIN'), lock.query(readSchema), lock.query('ROLLBACK')]
  // From here on the database does not wait: `run` does, and lets others run meanwhile.
  lock.run('PRAGMA busy_timeout = 0')
  let underWay = 0
  /** When those that are under way took the lock. */
  let takenAt = 0

  /** Whether the caller may commit now. */
  function enter(): boolean {
    // Released from time to time: commits that overlap without a gap would keep an opening waiting for ever.
    if (underWay > 0 && performance.now() - takenAt > commitsTogetherMs) return false
    if (underWay === 0 && !take()) return false
    underWay += 1
    return true
  }

  function take(): boolean {
    begin.run()
    try {
      read.get()
      takenAt = performance.now()
      return true
    } catch (error) {
      end.run()
      if (isBusy(error as SQLiteError)) return false
      throw lockError(join(folder, openingLockFile), storeOpeningWaitMs, error as SQLiteError)
    }
  }

  return {
    /** Runs `commit` while no process opens the store. Rejects with what it throws, and as `withLock`. */
    async run<T>(commit: () => Promise<T>): Promise<T> {
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
    close(): void {
      for (const statement of [begin, read, end]) statement.finalize()
      lock.close()
    },
  }
}
