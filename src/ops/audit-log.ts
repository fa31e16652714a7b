/**
 * The audit log: who minted, revoked or was denied what. `audit.jsonl` has one JSON object a line, each with the hash
 * of the line before it, so that a changed, removed or inserted line is detected. The server and the commands write to
 * the same file; a lock of the operating system lets one process append at a time. The file may be moved away at any
 * time: the next write begins a new file, whose first line has the hash of the old file's last one.
 */

import { join } from 'node:path'
import { auditRefusalsPerCaller, auditRefusalsPerSecond, freeBytesMin } from '../limits.ts'
import { freeBytes, requireFreeSpace } from '../storage/free-space.ts'
import { AuditFile } from './audit-file.ts'
import { openAuditLock } from './audit-lock.ts'
import type { Entry } from './chained-file.ts'
import { createRefusalCount, type RefusedCaller } from './denial-count.ts'
import { cannotWrite, createLineBatch } from './line-batch.ts'

/** Fields of an entry. Undefined ones are left out. */
export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>

/** What writes entries. Time, number and hashes are added here. */
export interface Audit {
  /**
   * Asked before an act. Throws StoreError `unavailable` if lines could not be written and still cannot. Lines of what
   * was done meanwhile are written first, when they can be.
   */
  requireWritable(): void
  /** Throws StoreError `unavailable` if the disk has room for revocations only: for acts that write a line alone. */
  requireRoom(): void
  /**
   * Before an act: resolves when the line is in the file. Rejects with StoreError `unavailable` if it cannot be
   * written; the caller must then refuse the act.
   */
  record(event: string, fields: AuditFields): Promise<void>
  /**
   * After an act that is durable: as `record`, but rejects with StoreError `indeterminate`, so that nobody is told that
   * nothing was done. A line that cannot be written is passed to `onFailure`, whole.
   */
  recordDone(event: string, fields: AuditFields): Promise<void>
  /**
   * Records a denial. Denials may come in floods: beyond a bound only their number is written, and the caller does not
   * wait.
   */
  recordBestEffort(event: string, caller: RefusedCaller, fields: AuditFields): void
}

export interface AuditLog extends Audit {
  /** Reopens the file after a rotation, without waiting for the next entry. */
  reopen(): void
  close(): void
}

interface AuditLogOptions {
  readonly now: () => Date
  /** Added to each line, if the store is shared with others that have logs of their own. */
  readonly replica?: string
  /** Called if lines of `recordBestEffort` or `recordDone`, or a reopening, failed. `line`: what was done. */
  readonly onFailure: (error: unknown, line?: object) => void
  /** Free bytes of the disk of a folder; as the system says by default. */
  readonly free?: typeof freeBytes
}

const secondMs = 1000
/** In errors. */
const logName = 'the audit log'

/** Opens the audit log of a data folder. Throws StoreError `damaged` for an invalid lock file. */
export function openAuditLog(folder: string, { now, replica, onFailure, free = freeBytes }: AuditLogOptions): AuditLog {
  const lock = openAuditLock(join(folder, 'audit.lock'))
  const file = new AuditFile(join(folder, 'audit.jsonl'), lock)
  let hasFailed = false
  /** What was done and has no line yet. No act is begun before they are written, so they are few. */
  let owed: Entry[] = []
  const write = (entries: readonly Entry[]) => {
    hasFailed = true
    const waiting = owed
    lock.hold(() => file.append([...waiting, ...entries], { time: now().toISOString(), ...(replica && { replica }) }))
    owed = owed.slice(waiting.length)
    hasFailed = false
  }
  const lines = createLineBatch(write)
  let second = 0
  let countTimer: ReturnType<typeof setTimeout> | undefined
  const denials = createRefusalCount({ perCaller: auditRefusalsPerCaller, inAll: auditRefusalsPerSecond })

  const requireRoom = () => requireFreeSpace(folder, 0, freeBytesMin, free)

  function hasRoom(): boolean {
    try {
      requireRoom()
      return true
    } catch {
      return false
    }
  }

  /** Writes the number of denials that were only counted. */
  function writeCounts(): void {
    clearTimeout(countTimer)
    countTimer = undefined
    for (const { caller, count } of denials.end()) {
      lines.add('refusals.unwritten', { userId: caller?.userId, keyId: caller?.keyId, count }).catch(onFailure)
    }
  }

  return {
    requireRoom,
    requireWritable() {
      if (!hasFailed) return
      try {
        write([{ event: 'log.failed', fields: {} }])
      } catch (error) {
        throw cannotWrite(logName, 'unavailable', error)
      }
    },
    record: (event, fields) =>
      lines.add(event, fields).catch((error: unknown) => {
        throw cannotWrite(logName, 'unavailable', error)
      }),
    recordDone: (event, fields) =>
      lines.add(event, fields).catch((error: unknown) => {
        owed.push({ event, fields })
        onFailure(error, { event, ...fields })
        throw cannotWrite(logName, 'indeterminate', error)
      }),
    recordBestEffort(event, caller, fields) {
      const current = Math.floor(now().getTime() / secondMs)
      if (current !== second) {
        second = current
        writeCounts()
      }
      // The room that is left is for revocations: then only numbers are written.
      if (denials.isWritten(caller, hasRoom())) {
        lines.add(event, { userId: caller.userId, keyId: caller.keyId, ...fields }).catch(onFailure)
        return
      }
      // Without a further denial, the timer ends the second.
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
      lines.flush()
      lock.close()
      file.close()
    },
  }
}
