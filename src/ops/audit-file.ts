/** The file of the audit log: lines are appended to the chain where it ends, wherever the file was moved meanwhile. */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { auditTailBytes } from '../limits.ts'
import { type ChainEnd, firstHash, formatLine, parseLine } from './audit-chain.ts'
import type { AuditLock } from './audit-lock.ts'

/** As 'a+', through no symbolic link: what stands behind one is not ours to write to. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

export class AuditFile {
  readonly #path: string
  readonly #lock: AuditLock
  #file: number
  /** `#end` stands after this many bytes of the file; -1: it must be looked for. */
  #size = -1
  #end: ChainEnd = { seq: 0, hash: firstHash }
  #endsWithWholeLine = true

  constructor(path: string, lock: AuditLock) {
    this.#path = path
    this.#lock = lock
    this.#file = open(path)
  }

  /**
   * Each entry in order, on a line of its own. To be called while the lock is held. Throws where they were not
   * written.
   */
  append(entries: readonly object[]): void {
    if (!this.#isStillNamed()) this.reopen()
    const size = fstatSync(this.#file).size
    if (size !== this.#size) this.#findEnd(size)
    let { seq, hash } = this.#end
    // A line that a crash cut short stays as it is; `audit verify` says so.
    let text = this.#endsWithWholeLine ? '' : '\n'
    for (const entry of entries) {
      seq += 1
      const line = formatLine({ seq, ...entry, prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    // Known only when all of it is written: after a failure the end is looked for again.
    this.#size = -1
    if (writeSync(this.#file, bytes) !== bytes.length) throw new Error('the audit log was not written whole')
    this.#end = { seq, hash }
    this.#lock.keep(this.#end)
    this.#size = size + bytes.length
    this.#endsWithWholeLine = true
  }

  /** Lets go of a file that was moved away. */
  reopen(): void {
    const next = open(this.#path)
    closeSync(this.#file)
    this.#file = next
    this.#size = -1
  }

  close(): void {
    closeSync(this.#file)
  }

  #findEnd(size: number): void {
    const found = endOf(this.#file, size)
    // A file that was moved away, emptied or cut off does not say where the chain ends.
    const kept = this.#lock.end()
    this.#end = kept !== undefined && kept.seq >= found.seq ? kept : found
    this.#endsWithWholeLine = found.isWhole
  }

  /** Is the file that is open the one of its name? */
  #isStillNamed(): boolean {
    const named = lstatSync(this.#path, { throwIfNoEntry: false })
    const { ino, dev } = fstatSync(this.#file)
    return named?.ino === ino && named.dev === dev
  }
}

function open(path: string): number {
  return openSync(path, appending, 0o600)
}

/** The last entry of the file. */
function endOf(file: number, size: number): ChainEnd & { readonly isWhole: boolean } {
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
