/**
 * The audit log and the record of calls, as far as they are alike: a chained file, lines of one turn of the event loop
 * written together, and refusals, which come in floods, counted past a bound.
 */

import { freeBytesMin } from '../limits.ts'
import { type freeBytes, requireFreeSpace } from '../storage/free-space.ts'
import { StoreError } from '../storage/store.ts'
import type { Entry } from './audit-chain.ts'
import { ChainedFile, type ChainedFileOptions } from './chained-file.ts'
import { createRefusalCount, type RefusedCaller } from './denial-count.ts'

export interface LogOptions extends Pick<ChainedFileOptions, 'clock' | 'replica'> {
  /** Called if the file cannot be reopened, or a line that nobody waits for not be written. `line`: a done act. */
  readonly onFailure: (error: unknown, line?: object) => void
  /** Free bytes of the disk of a folder; as the system says by default. */
  readonly free?: typeof freeBytes
}

interface ChainedLogOptions extends LogOptions, ChainedFileOptions {
  readonly folder: string
  /** In errors: `the audit log`. */
  readonly name: string
  /** Refusals that are written one by one in a second. */
  readonly refusals: Parameters<typeof createRefusalCount>[0]
}

type Pending = Entry & PromiseWithResolvers<void>

const secondMs = 1000

export class ChainedLog {
  readonly #options: ChainedLogOptions
  readonly #file: ChainedFile
  readonly #refusals: ReturnType<typeof createRefusalCount>
  #pending: Pending[] = []
  #second = 0
  #countTimer: ReturnType<typeof setTimeout> | undefined

  hasFailed = false

  constructor(options: ChainedLogOptions) {
    this.#options = options
    this.#file = new ChainedFile(options)
    this.#refusals = createRefusalCount(options.refusals)
  }

  /** Throws StoreError `unavailable` if the disk has room for revocations only. */
  requireRoom(): void {
    requireFreeSpace(this.#options.folder, 0, freeBytesMin, this.#options.free)
  }

  /** Writes entries now, before an act. Throws StoreError `unavailable`; some may be in the file then. */
  write(entries: readonly Entry[]): void {
    try {
      this.#append(entries)
    } catch (error) {
      throw this.error('unavailable', error)
    }
  }

  /** Resolves when the line is in the file, with the others of this turn. Rejects with what the file system throws. */
  add(event: string, fields: object): Promise<void> {
    if (this.#pending.length === 0) setImmediate(() => this.flush())
    const pending = { event, fields, ...Promise.withResolvers<void>() }
    this.#pending.push(pending)
    return pending.promise
  }

  /**
   * Counts a refusal. True if it is to be written, which it never is while the disk has room for revocations only: the
   * number of the others is written, by caller, when the second is over and there is room.
   */
  isWritten(caller: RefusedCaller): boolean {
    const current = Math.floor(this.#options.clock.monotonic() / secondMs)
    if (current !== this.#second) {
      this.#second = current
      this.#writeCounts()
    }
    if (this.#refusals.isWritten(caller, this.#hasRoom())) return true
    // Without a further refusal, the timer ends the second.
    this.#countLater()
    return false
  }

  /** The error of an act that gets no line. `unavailable`: it was not done; `indeterminate`: it was. */
  error(kind: 'unavailable' | 'indeterminate', cause: unknown): StoreError {
    return new StoreError(kind, `${this.#options.name} cannot be written: ${(cause as Error).message}`, { cause })
  }

  /** Opens the file of this name after one was moved away. `settle` writes lines that could not be written before. */
  reopen(settle: () => void): void {
    this.#attempt(() => {
      this.#file.reopen()
      this.#file.continue()
      settle()
    })
  }

  flush(): void {
    const batch = this.#pending
    this.#pending = []
    if (batch.length === 0) return
    try {
      this.#append(batch)
      for (const { resolve } of batch) resolve()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  /** `settle`: as in `reopen`. Without another act, nothing would write these lines any more. */
  close(settle: () => void): void {
    this.#writeCounts(true)
    this.flush()
    this.#attempt(settle)
    this.#attempt(() => this.#file.continue())
    this.#file.close()
  }

  #attempt(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#options.onFailure(error)
    }
  }

  #append(entries: readonly Entry[]): void {
    this.hasFailed = true
    this.#file.append(entries)
    this.hasFailed = false
  }

  #hasRoom(): boolean {
    try {
      this.requireRoom()
      return true
    } catch {
      return false
    }
  }

  #countLater(): void {
    this.#countTimer ??= setTimeout(() => this.#writeCounts(), secondMs).unref()
  }

  #writeCounts(isLast = false): void {
    clearTimeout(this.#countTimer)
    this.#countTimer = undefined
    if (!isLast && !this.#hasRoom()) {
      // A line a second for each caller would take what is left for revocations.
      this.#countLater()
      return
    }
    for (const { caller, unwritten } of this.#refusals.end()) {
      const fields = { userId: caller?.userId, keyId: caller?.keyId, count: unwritten }
      this.add('refusals.unwritten', fields).catch(this.#options.onFailure)
    }
  }
}
