/** The file of the audit log, to which several processes append. The lock file has the end of the chain. */

import { type ChainEnd, firstHash } from './audit-chain.ts'
import type { AuditLock } from './audit-lock.ts'
import { ChainedFile, type Entry, type LineContext } from './chained-file.ts'

/** An open log file. All methods are synchronous. */
export class AuditFile {
  readonly #lock: AuditLock
  readonly #file: ChainedFile
  /** Size of the file after `#end`; -1 if the end must be searched. */
  #size = -1
  #end: ChainEnd = { seq: 0, hash: firstHash }
  #isWhole = true

  constructor(path: string, lock: AuditLock) {
    this.#lock = lock
    this.#file = new ChainedFile(path)
  }

  /**
   * Appends entries in order, one a line; an empty file that continues another says so first. The caller must hold the
   * lock. Throws if they were not written completely.
   */
  append(given: readonly Entry[], context: LineContext): void {
    if (!this.#file.isStillNamed()) this.reopen()
    const { size } = this.#file
    if (size !== this.#size) this.#findEnd()
    const continues = size === 0 && this.#end.seq > 0 && given.length > 0
    const entries = continues ? [{ event: 'log.continued', fields: {} }, ...given] : given
    // Unknown until all bytes are written: after a failure the end is searched again.
    this.#size = -1
    this.#end = this.#file.append(entries, { end: this.#end, isWhole: this.#isWhole }, context)
    this.#lock.keep(this.#end)
    // The lock keeps others from writing meanwhile.
    this.#size = this.#file.size
    this.#isWhole = true
  }

  /** Closes a file that was moved away, and opens the one under its name. */
  reopen(): void {
    this.#file.reopen()
    this.#size = -1
  }

  close(): void {
    this.#file.close()
  }

  /** Finds the end of the chain after another process has written, or after a rotation. */
  #findEnd(): void {
    const found = this.#file.end()
    // A new, emptied or truncated file does not contain the end of the chain; the lock file does.
    const kept = this.#lock.end()
    this.#end = kept !== undefined && kept.seq >= found.end.seq ? kept : found.end
    this.#isWhole = found.isWhole
  }
}
