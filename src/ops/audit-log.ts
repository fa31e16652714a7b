/**
 * The audit log: who minted, revoked or was refused what. One JSON object a line in `audit.jsonl`, each with the
 * hash of the line before it, so that no line can be changed, taken out or put in without a trace. The server and
 * the commands write to the same file: a lock of the operating system lets one append at a time. The file may be moved
 * away at any time: the next process that writes begins a new one, whose first line has the hash of the old one's last.
 */

import { Database } from 'bun:sqlite'
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../storage/store.ts'
import { firstHash, lineOf, linked } from './audit-chain.ts'
import { createRefusalCount, type RefusedCaller } from './denial-count.ts'

export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>

export interface Audit {
  /** Resolves when the line is in the file. Throws StoreError `unavailable` when it cannot be written. */
  record(event: string, fields: AuditFields): Promise<void>
  /**
   * The same for a refusal, of which there may be floods: past a bound only a number is written, and nothing is
   * waited for.
   */
  note(event: string, caller: RefusedCaller, fields: AuditFields): void
}

export interface AuditLog extends Audit {
  /** Lets go of a file that was moved away, without waiting for the next line. */
  reopen(): void
  close(): void
}

/** As 'a+', through no symbolic link: what stands behind one is not ours to write to. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

interface AuditLogOptions {
  readonly now: () => Date
  /** Told when notes could not be written. */
  readonly onFailure: (error: unknown) => void
}

interface Pending {
  readonly event: string
  readonly fields: AuditFields
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/** Where the next entry goes on. */
interface End {
  readonly seq: number
  readonly hash: string
}

const secondMs = 1000

/** Throws StoreError `damaged` for a lock file that is none. */
export function openAuditLog(folder: string, { now, onFailure }: AuditLogOptions): AuditLog {
  const path = join(folder, 'audit.jsonl')
  let file = openFile(path)
  const lock = openLock(join(folder, 'audit.lock'))
  let pending: Pending[] = []
  /** After this many bytes of `file`; -1: to be looked for. */
  let size = -1
  let end: End = { seq: 0, hash: firstHash }
  let isWhole = true
  let second = 0
  let telling: ReturnType<typeof setTimeout> | undefined
  const refusals = createRefusalCount()

  function flush(): void {
    const batch = pending
    pending = []
    if (batch.length === 0) return
    try {
      lock.hold(() => append(batch))
      for (const { done } of batch) done()
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
  }

  function append(batch: readonly Pending[]): void {
    if (!isStillThere()) reopen()
    const there = fstatSync(file).size
    if (there !== size) {
      const found = endOf(file, there)
      // A file that was moved away, emptied or cut off does not say where the chain ends.
      const kept = lock.end()
      end = kept !== undefined && kept.seq >= found.seq ? kept : found
      isWhole = found.isWhole
    }
    let { seq, hash } = end
    // A line that a crash cut short stays as it is; `audit verify` says so.
    let text = isWhole ? '' : '\n'
    for (const { event, fields } of batch) {
      seq += 1
      const line = lineOf({ seq, time: now().toISOString(), event, ...fields, prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    // Known only when all of it is written: after a failure the end is looked for again.
    size = -1
    if (writeSync(file, bytes) !== bytes.length) throw new Error('the audit log was not written whole')
    end = { seq, hash }
    lock.keep(end)
    size = there + bytes.length
    isWhole = true
  }

  /** Is the file that is open the one that its name stands for? */
  function isStillThere(): boolean {
    const named = lstatSync(path, { throwIfNoEntry: false })
    const { ino, dev } = fstatSync(file)
    return named?.ino === ino && named.dev === dev
  }

  function reopen(): void {
    const next = openFile(path)
    closeSync(file)
    file = next
    size = -1
  }

  function add(event: string, fields: AuditFields): Promise<void> {
    return new Promise((done, failed) => {
      // What comes in one turn of the event loop is written together.
      if (pending.length === 0) setImmediate(flush)
      pending.push({ event, fields, done, failed })
    })
  }

  /** What was only counted. */
  function tellUnwritten(): void {
    clearTimeout(telling)
    telling = undefined
    for (const { caller, count } of refusals.end()) {
      add('refusals.unwritten', { userId: caller?.userId, keyId: caller?.keyId, count }).catch(onFailure)
    }
  }

  return {
    record: (event, fields) =>
      add(event, fields).catch((error: unknown) => {
        throw new StoreError('unavailable', `the audit log cannot be written: ${(error as Error).message}`, {
          cause: error,
        })
      }),
    note(event, caller, fields) {
      const current = Math.floor(now().getTime() / secondMs)
      if (current !== second) {
        second = current
        tellUnwritten()
      }
      if (refusals.isWritten(caller)) {
        add(event, { userId: caller.userId, keyId: caller.keyId, ...fields }).catch(onFailure)
        return
      }
      // No later refusal may come to end the second.
      telling ??= setTimeout(tellUnwritten, secondMs).unref()
    },
    reopen() {
      try {
        reopen()
      } catch (error) {
        onFailure(error)
      }
    },
    close() {
      tellUnwritten()
      flush()
      lock.close()
      closeSync(file)
    },
  }
}

/** The one place that opens the log. */
function openFile(path: string): number {
  return openSync(path, appending, 0o600)
}

interface Lock {
  /** Runs it while nobody else does, in any process. */
  hold(work: () => void): void
  /** The end of the chain as it was kept last; undefined before that. While held. */
  end(): End | undefined
  /** While held. */
  keep(end: End): void
  close(): void
}

/**
 * An SQLite file, because its lock is the one of the operating system that the runtime offers. The end of the chain is
 * in it: what is written under the lock and what the lock keeps agree. It is not flushed to the disk, as lines are not;
 * its write-ahead log stays sound all the same.
 */
function openLock(path: string): Lock {
  let database: Database | undefined
  try {
    database = new Database(path)
    database.run('PRAGMA busy_timeout = 5000')
    database.run('PRAGMA journal_mode = WAL')
    database.run('PRAGMA synchronous = NORMAL')
    database.run('CREATE TABLE IF NOT EXISTS chain (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER, hash TEXT)')
    const read = database.query<End, []>('SELECT seq, hash FROM chain')
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
      `${path} is not the lock of the audit log (${message}): remove it, and it is made anew`,
      {
        cause: error,
      },
    )
  }
}

/** The last entry of the file. Lines are short: the end of the file has several. */
function endOf(file: number, size: number): End & { readonly isWhole: boolean } {
  const tail = Buffer.alloc(Math.min(size, 64 * 1024))
  readSync(file, tail, 0, tail.length, size - tail.length)
  const text = tail.toString()
  const isWhole = size === 0 || text.endsWith('\n')
  for (const line of text.split('\n').reverse()) {
    const read = linked(line)
    if (read !== undefined) return { seq: read.seq, hash: read.hash, isWhole }
  }
  return { seq: 0, hash: firstHash, isWhole }
}
