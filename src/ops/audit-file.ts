/** The file of the audit log: appends entries to the end of the chain, even after the file was moved away (rotated). */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { auditTailBytes } from '../limits.ts'
import { type ChainEnd, firstHash, formatLine, parseLine } from './audit-chain.ts'
import type { AuditLock } from './audit-lock.ts'

/** Like 'a+', but does not follow a symbolic link, whose target may not be ours to write. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

/** An entry without what links it to the others. */
export interface AuditEntry {
  readonly time: string
  readonly event: string
}

/** An open log file. All methods are synchronous. */
export class AuditFile {
  readonly #path: string
  readonly #lock: AuditLock
  #file: number
  /** Size of the file after `#end`; -1 if the end must be searched. */
  #size = -1
  #end: ChainEnd = { seq: 0, hash: firstHash }
  #endsWithWholeLine = true

  constructor(path: string, lock: AuditLock) {
    this.#path = path
    this.#lock = lock
    this.#file = open(path)
  }

  /**
   * Appends entries in order, one a line; an empty file that continues another says so first. The caller must hold the
   * lock. Throws if they were not written completely.
   */
  append(given: readonly AuditEntry[]): void {
    if (!this.#isStillNamed()) this.reopen()
    const size = fstatSync(this.#file).size
    if (size !== this.#size) this.#findEnd(size)
    let { seq, hash } = this.#end
    const [first] = given
    const continues = size === 0 && seq > 0 && first !== undefined
    const entries = continues ? [{ time: first.time, event: 'log.continued' }, ...given] : given
    // A line truncated by a crash stays as it is; `audit verify` reports it.
    let text = this.#endsWithWholeLine ? '' : '\n'
    for (const entry of entries) {
      seq += 1
      const line = formatLine({ seq, ...entry, prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    // Unknown until all bytes are written: after a failure the end is searched again.
    this.#size = -1
    if (writeSync(this.#file, bytes) !== bytes.length) throw new Error('the audit log was not written whole')
    this.#end = { seq, hash }
    this.#lock.keep(this.#end)
    this.#size = size + bytes.length
    this.#endsWithWholeLine = true
  }

  /** Closes a file that was moved away, and opens the one under its name. */
  reopen(): void {
    const next = open(this.#path)
    closeSync(this.#file)
    this.#file = next
    this.#size = -1
  }

  close(): void {
    closeSync(this.#file)
  }

  /** Finds the end of the chain after another process has written, or after a rotation. */
  #findEnd(size: number): void {
    const found = endOf(this.#file, size)
    // A new, emptied or truncated file does not contain the end of the chain; the lock file does.
    const kept = this.#lock.end()
    this.#end = kept !== undefined && kept.seq >= found.seq ? kept : found
    this.#endsWithWholeLine = found.isWhole
  }

  /** True if the open file is still the one under its name. */
  #isStillNamed(): boolean {
    const named = lstatSync(this.#path, { throwIfNoEntry: false })
    const { ino, dev } = fstatSync(this.#file)
    return named?.ino === ino && named.dev === dev
  }
}

function open(path: string): number {
  return openSync(path, appending, 0o600)
}

/** The last whole entry in the file's tail, and whether the file ends with a whole line. */
export function endOf(file: number, size: number): ChainEnd & { readonly isWhole: boolean } {
  const tail = Buffer.alloc(Math.min(size, auditTailBytes))
  readSync(file, tail, 0, tail.length, size - tail.length)
  const text = tail.toString()
  const isWhole = size === 0 || text.endsWith('\n')
  for (const line of text.split('\n').reverse()) {
    const parsed = parseLine(line)
    if (parsed !== undefined) return { seq: parsed.seq, hash: parsed.hash, isWhole }
  }
  return { seq: 0, hash: firstHash, isWhole }
}
