/**
 * The audit log: who minted, revoked or was denied what. One JSON object a line in `audit.jsonl`, each with the hash of
 * the line before it, so that no line can be changed, taken out or put in without a trace. The server and the commands
 * write to the same file: a lock of the operating system lets one append at a time. The file may be moved away at any
 * time: the next process that writes begins a new one, whose first line has the hash of the old one's last.
 */

import { join } from 'node:path'
import { StoreError } from '../storage/store.ts'
import { AuditFile } from './audit-file.ts'
import { openAuditLock } from './audit-lock.ts'
import { createRefusalCount, type RefusedCaller } from './denial-count.ts'

export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>

export interface Audit {
  /** Resolves when the line is in the file. Throws StoreError `unavailable` when it cannot be written. */
  record(event: string, fields: AuditFields): Promise<void>
  /**
   * The same for a denial, of which there may be floods: past a bound only a number is written, and nothing is
   * waited for.
   */
  recordBestEffort(event: string, caller: RefusedCaller, fields: AuditFields): void
}

export interface AuditLog extends Audit {
  /** Lets go of a file that was moved away, without waiting for the next line. */
  reopen(): void
  close(): void
}

interface AuditLogOptions {
  readonly now: () => Date
  /** Told when lines of `recordBestEffort` could not be written. */
  readonly onFailure: (error: unknown) => void
}

interface Pending {
  readonly event: string
  readonly fields: AuditFields
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

const secondMs = 1000

/** Throws StoreError `damaged` for a lock file that is none. */
export function openAuditLog(folder: string, { now, onFailure }: AuditLogOptions): AuditLog {
  const lock = openAuditLock(join(folder, 'audit.lock'))
  const file = new AuditFile(join(folder, 'audit.jsonl'), lock)
  let pending: Pending[] = []
  let second = 0
  let countTimer: ReturnType<typeof setTimeout> | undefined
  const denials = createRefusalCount()

  function flush(): void {
    const batch = pending
    pending = []
    if (batch.length === 0) return
    try {
      lock.hold(() => file.append(batch.map(({ event, fields }) => ({ time: now().toISOString(), event, ...fields }))))
      for (const { done } of batch) done()
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
  }

  function add(event: string, fields: AuditFields): Promise<void> {
    return new Promise((done, failed) => {
      // What comes in one turn of the event loop is written together.
      if (pending.length === 0) setImmediate(flush)
      pending.push({ event, fields, done, failed })
    })
  }

  /** Writes how many denials were only counted. */
  function writeCounts(): void {
    clearTimeout(countTimer)
    countTimer = undefined
    for (const { caller, count } of denials.end()) {
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
    recordBestEffort(event, caller, fields) {
      const current = Math.floor(now().getTime() / secondMs)
      if (current !== second) {
        second = current
        writeCounts()
      }
      if (denials.isWritten(caller)) {
        add(event, { userId: caller.userId, keyId: caller.keyId, ...fields }).catch(onFailure)
        return
      }
      // No later denial may come to end the second.
      countTimer ??= setTimeout(writeCounts, secondMs).unref()
    },
    reopen() {
      try {
        file.reopen()
      } catch (error) {
        onFailure(error)
      }
    },
    close() {
      writeCounts()
      flush()
      lock.close()
      file.close()
    },
  }
}
