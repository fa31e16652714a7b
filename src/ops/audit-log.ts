/**
 * The audit log: who minted, revoked or was denied what. `audit.jsonl` has one JSON object a line, each with the hash
 * of the line before it, so that a changed, removed or inserted line is detected. The server and the commands write to
 * the same file; a lock of the operating system lets one process append at a time. The file may be moved away at any
 * time: the next write begins a new file, whose first line has the hash of the old file's last one.
 */

import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import { auditRefusalsPerCaller, auditRefusalsPerSecond, freeBytesMin } from '../limits.ts'
import { freeBytes, requireFreeSpace } from '../storage/free-space.ts'
import { openAuditLock } from './audit-lock.ts'
import type { Entry } from './chained-file.ts'
import { ChainedLog } from './chained-log.ts'
import type { RefusedCaller } from './denial-count.ts'

/** Fields of an entry. Undefined ones are left out. */
export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>

/** Writes entries. Time, number and hashes are added here. */
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
   * After an act that is durable: as `record`, but rejects with StoreError `indeterminate`, so that no answer says that
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
  readonly clock: Clock
  /** Added to each line, if the store is shared with others that have logs of their own. */
  readonly replica?: string
  /** Called if lines of `recordBestEffort` or `recordDone`, or a reopening, failed. `line`: what was done. */
  readonly onFailure: (error: unknown, line?: object) => void
  /** Free bytes of the disk of a folder; as the system says by default. */
  readonly free?: typeof freeBytes
}

/** Opens the audit log of a data folder. Throws StoreError `damaged` for an invalid lock file. */
export function openAuditLog(
  folder: string,
  { clock, replica, onFailure, free = freeBytes }: AuditLogOptions,
): AuditLog {
  const lock = openAuditLock(join(folder, 'audit.lock'))
  const log = new ChainedLog({
    path: join(folder, 'audit.jsonl'),
    name: 'the audit log',
    clock,
    replica,
    keeper: lock,
    isDue: () => true,
    alone(write) {
      hasFailed = true
      lock.hold(write)
      hasFailed = false
    },
    refusals: { perCaller: auditRefusalsPerCaller, inAll: auditRefusalsPerSecond },
    onFailure,
  })
  let hasFailed = false
  /** Acts that were done and have no line yet. No act is begun before their lines are written, so they are few. */
  let owed: Entry[] = []
  const requireRoom = () => requireFreeSpace(folder, 0, freeBytesMin, free)

  return {
    requireRoom,
    requireWritable() {
      if (!hasFailed && owed.length === 0) return
      try {
        log.write([...owed, { event: 'log.failed', fields: {} }])
        owed = []
      } catch (error) {
        throw log.error('unavailable', error)
      }
    },
    record: (event, fields) =>
      log.add(event, fields).catch((error: unknown) => {
        throw log.error('unavailable', error)
      }),
    recordDone: (event, fields) =>
      log.add(event, fields).catch((error: unknown) => {
        owed.push({ event, fields })
        onFailure(error, { event, ...fields })
        throw log.error('indeterminate', error)
      }),
    recordBestEffort(event, caller, fields) {
      // The room that is left is for revocations: then only numbers are written.
      if (!log.isWritten(caller, succeeds(requireRoom))) return
      log.add(event, { userId: caller.userId, keyId: caller.keyId, ...fields }).catch(onFailure)
    },
    reopen: () => log.reopen(),
    close() {
      log.close()
      lock.close()
    },
  }
}

function succeeds(work: () => void): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}
