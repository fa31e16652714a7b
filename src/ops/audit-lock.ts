/** The lock of the audit log: one process at a time appends, and knows where the chain ends. */

import { Database } from 'bun:sqlite'
import { StoreError } from '../storage/store.ts'
import type { ChainEnd } from './audit-chain.ts'

export interface AuditLock {
  /** Runs it while nobody else does, in any process. */
  hold(work: () => void): void
  /** The end of the chain as it was kept last; undefined before that. While held. */
  end(): ChainEnd | undefined
  /** While held. */
  keep(end: ChainEnd): void
  close(): void
}

/**
 * An SQLite file, because its lock is the one of the operating system that the runtime offers. The end of the chain is
 * in it: what is written under the lock and what the lock keeps agree. It is not flushed to the disk, as lines are not;
 * its write-ahead log stays sound all the same.
 */
export function openAuditLock(path: string): AuditLock {
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
      hold(work) {
        opened.run('BEGIN IMMEDIATE')
        try {
          work()
          opened.run('COMMIT')
        } catch (error) {
          if (opened.inTransaction) opened.run('ROLLBACK')
          throw error
        }
      },
      end: () => read.get() ?? undefined,
      keep: ({ seq, hash }) => void write.run(seq, hash),
      close() {
        // Before its statements are, it is not closed, and its write-ahead log stays.
        read.finalize()
        write.finalize()
        opened.close()
      },
    }
  } catch (error) {
    database?.close()
    const { message } = error as Error
    throw new StoreError(
      'damaged',
      `${path} is not the lock of the audit log (${message}): delete it; it will be created again`,
      {
        cause: error,
      },
    )
  }
}
