/**
 * The audit log: who minted, revoked or was refused what. One JSON object a line in `audit.jsonl`, each with the
 * hash of the line before it, so that no line can be changed, taken out or put in without a trace. The server and
 * the commands write to the same file: a lock of the operating system lets one append at a time.
 */

import { Database } from 'bun:sqlite'
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { auditRefusalsPerSecond } from '../limits.ts'
import { StoreError } from '../storage/store.ts'
import { firstHash, lineOf, linked } from './chain.ts'

export type AuditFields = Readonly<Record<string, string | number | boolean | null | readonly string[] | undefined>>

export interface Audit {
  /** Resolves when the line is in the file. Throws StoreError `unavailable` when it cannot be written. */
  record(event: string, fields: AuditFields): Promise<void>
  /** The same for what may come in floods: past a bound only a number is written, and nothing is waited for. */
  note(event: string, fields: AuditFields): void
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

export function openAuditLog(folder: string, { now, onFailure }: AuditLogOptions): Audit {
  const file = openSync(join(folder, 'audit.jsonl'), appending, 0o600)
  // Nothing is ever kept in it; it is there to be locked.
  const lock = new Database(join(folder, 'audit.lock'))
  lock.run('PRAGMA busy_timeout = 5000')
  let pending: Pending[] = []
  let end = { size: -1, seq: 0, hash: firstHash, whole: true }
  let second = 0
  let notes = 0
  let unwritten = 0

  function flush(): void {
    const batch = pending
    pending = []
    if (batch.length === 0) return
    try {
      lock.run('BEGIN IMMEDIATE')
      try {
        append(batch)
      } finally {
        lock.run('COMMIT')
      }
      for (const { done } of batch) done()
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
  }

  function append(batch: readonly Pending[]): void {
    const { size } = fstatSync(file)
    if (size !== end.size) end = endOf(file, size)
    let { seq, hash } = end
    // A line that a crash cut short stays as it is; `audit verify` says so.
    let text = end.whole ? '' : '\n'
    for (const { event, fields } of batch) {
      seq += 1
      const line = lineOf({ seq, time: now().toISOString(), event, ...fields, prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    // Known only when all of it is written: after a failure the end is looked for again.
    end = { ...end, size: -1 }
    if (writeSync(file, bytes) !== bytes.length) throw new Error('the audit log was not written whole')
    end = { size: size + bytes.length, seq, hash, whole: true }
  }

  function add(event: string, fields: AuditFields): Promise<void> {
    return new Promise((done, failed) => {
      // What comes in one turn of the event loop is written together.
      if (pending.length === 0) setImmediate(flush)
      pending.push({ event, fields, done, failed })
    })
  }

  return {
    record: (event, fields) =>
      add(event, fields).catch((error: unknown) => {
        throw new StoreError('unavailable', `the audit log cannot be written: ${(error as Error).message}`, {
          cause: error,
        })
      }),
    note(event, fields) {
      const current = Math.floor(now().getTime() / 1000)
      if (current !== second) {
        second = current
        notes = 0
        if (unwritten > 0) add('refusals.unwritten', { count: unwritten }).catch(onFailure)
        unwritten = 0
      }
      notes += 1
      if (notes > auditRefusalsPerSecond) unwritten += 1
      else add(event, fields).catch(onFailure)
    },
    close() {
      flush()
      lock.close()
      closeSync(file)
    },
  }
}

/** The last whole line of the file. Lines are short: the end of the file has several. */
function endOf(file: number, size: number): { size: number; seq: number; hash: string; whole: boolean } {
  const tail = Buffer.alloc(Math.min(size, 64 * 1024))
  readSync(file, tail, 0, tail.length, size - tail.length)
  const text = tail.toString()
  const whole = size === 0 || text.endsWith('\n')
  for (const line of text.split('\n').reverse()) {
    const read = linked(line)
    if (read !== undefined) return { size, seq: read.seq, hash: read.hash, whole }
  }
  return { size, seq: 0, hash: firstHash, whole }
}
