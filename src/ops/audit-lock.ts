/** The lock of the audit log: one process at a time appends, and the lock file stores the end of the chain. */

import { Database } from 'bun:sqlite'
import { StoreError } from '../storage/store.ts'
import type { ChainEnd } from './audit-chain.ts'

/**
 * Opens the lock, an SQLite file: its lock is the only lock of the operating system that the runtime offers. The end of
 * the chain is stored in the same transaction. Like the log's lines it is not flushed to disk at once; the write-ahead
 * log keeps the database consistent anyway. Throws StoreError `damaged`.
 */
export function openAuditLock(path: string) {
  let database: Database | undefined
  try {
    database = new Database(path)
    database.run('PRAGMA busy_timeout = 5000')
    database.run('PRAGMA journal_mode = WAL')
    database.run('PRAGMA synchronous = NORMAL')
    database.run('CREATE TABLE IF NOT EXISTS chain (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER, hash TEXT)')
    const read = database.query<ChainEnd, []>('SELECT seq, hash FROM chain')
    const write = database.query('INSERT OR REPLACE INTO chain VALUES (1, ?, ?)')
    const opened = database
    return {
      /** Runs `work` while no other process holds the lock. Waits up to five seconds for it, then throws. */
      hold(work: () => void): void {
        opened.run('BEGIN IMMEDIATE')
        try {
          work()
          opened.run('COMMIT')
        } catch (error) {
          if (opened.inTransaction) opened.run('ROLLBACK')
          throw error
        }
      },
      /** The stored end of the chain, or undefined if none was stored. Only while held. */
      end: () => read.get() ?? undefined,
      /** Stores the end of the chain. Only while held. */
      keep: ({ seq, hash }: ChainEnd) => void write.run(seq, hash),
      close() {
        // SQLite does not close a database with open statements, and its write-ahead log would remain.
        read.finalize()
        write.finalize()
        opened.close()
      },
    }
  } catch (error) {
    database?.close()
    const problem = `${path} is not the lock of the audit log (${(error as Error).message})`
    throw new StoreError('damaged', `${problem}: delete it; it will be created again`, { cause: error })
  }
}

export type AuditLock = ReturnType<typeof openAuditLock>
