/**
 * The audit log: who minted, revoked or was denied what. `audit.jsonl` has one JSON object a line, each with the hash
 * of the line before it, so that a changed, removed or inserted line is detected. The server and the commands write to
 * the same file; a lock of the operating system lets one process append at a time. The file may be moved away at any
 * time: the next write begins a new file, whose first line has the hash of the old file's last one.
 */

import { join } from 'node:path'
import { auditRefusalsPerCaller, auditRefusalsPerSecond } from '../limits.ts'
import type { AuditEvent } from '../model/audit-event.ts'
import type { Entry } from './audit-chain.ts'
import { openAuditLock } from './audit-lock.ts'
import { ChainedLog, type LogOptions } from './chained-log.ts'
import type { RefusedCaller } from './denial-count.ts'

/** Fields of an entry. Undefined ones are left out; those that every line has are not among them. */
export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>> &
  Readonly<Partial<Record<'seq' | 'time' | 'event' | 'prev' | 'hash' | 'replica', never>>>

/** Opens the audit log of a data folder. Throws StoreError `damaged` for an invalid lock file. */
export function openAuditLog(folder: string, options: LogOptions) {
  const lock = openAuditLock(join(folder, 'audit.lock'))
  const path = join(folder, 'audit.jsonl')
  const log = new ChainedLog({
    ...options,
    folder,
    path,
    name: 'the audit log',
    lock,
    lookMs: 0,
    refusals: { perCaller: auditRefusalsPerCaller, inAll: auditRefusalsPerSecond },
  })
  /** Acts that were done and have no line yet. No act is begun before their lines are written, so they are few. */
  let owed: Entry[] = []

  function requireWritable(): void {
    if (!log.hasFailed && owed.length === 0) return
    log.write([...owed, { event: 'log.failed', fields: {} }])
    owed = []
  }

  return {
    path,
    /** Throws StoreError `unavailable` if the disk has room for revocations only: for acts that write a line alone. */
    requireRoom: () => log.requireRoom(),
    /** Asked before an act. Writes lines that are owed; throws StoreError `unavailable` while none can be written. */
    requireWritable,
    /** Before an act: resolves when the line is in the file. Refuse the act if it rejects: StoreError `unavailable`. */
    record: (event: AuditEvent, fields: AuditFields) =>
      log.add(event, fields).catch((error: unknown) => {
        throw log.error('unavailable', error)
      }),
    /**
     * After an act that is durable: as `record`, but rejects with StoreError `indeterminate`, so that no answer says
     * that nothing was done. A line that cannot be written is passed to `onFailure`, whole.
     */
    recordDone: (event: AuditEvent, fields: AuditFields) =>
      log.add(event, fields).catch((error: unknown) => {
        owed.push({ event, fields })
        options.onFailure(error, { event, ...fields })
        throw log.error('indeterminate', error)
      }),
    /** Records a denial. They come in floods: past a bound only their number is written. The caller does not wait. */
    recordBestEffort(event: AuditEvent, caller: RefusedCaller, fields: AuditFields) {
      if (!log.isWritten(caller)) return
      log.add(event, { userId: caller.userId, keyId: caller.keyId, ...fields }).catch(options.onFailure)
    },
    /** Reopens the file after a rotation, without waiting for the next entry. */
    reopen: () => log.reopen(requireWritable),
    close() {
      log.close(requireWritable)
      lock.close()
    },
  }
}

export type AuditLog = ReturnType<typeof openAuditLog>

/** Writes entries. Time, number and hashes are added here. */
export type Audit = Omit<AuditLog, 'reopen' | 'close'>
