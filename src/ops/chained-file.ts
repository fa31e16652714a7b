/**
 * A file of chained lines (`audit-chain.ts`). It may be moved away at any time: the next write begins a new file, whose
 * first line has the hash of the old file's last one. It may end in half a line.
 */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { type Clock, timestampOf } from '../clock.ts'
import { utf8Of } from '../storage/bytes.ts'
import { requirePrivateStats } from '../storage/private-file.ts'
import { type ChainEnd, type Entry, firstHash, formatLine, parseLine } from './audit-chain.ts'
import type { AuditLock } from './audit-lock.ts'

/**
 * The last entry of an audit log is searched in this many bytes; lines are short, so they hold several. Past it: the
 * chain continues from the end stored in the lock file, and that of the record of calls from the end in memory.
 */
const auditTailBytes = 64 * 1024

export interface ChainedFileOptions {
  readonly path: string
  readonly clock: Clock
  /** Added to each line, if the store is shared with others that have logs of their own. */
  readonly replica?: string | undefined
  /** Of a file that several processes write. It keeps the end of the chain, which one alone knows itself. */
  readonly lock?: AuditLock
  /** Called before so many bytes are written. Throws if the disk has no room for them. */
  readonly requireRoom?: (bytes: number) => void
  /** Least milliseconds between two looks whether the file was moved away, or written by another process. */
  readonly lookMs: number
}

/** Like 'a+', but does not follow a symbolic link, whose target may not be ours to write. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

/** Throws CommandError for what another user could read or replace, or is no file. */
function openPrivate(path: string): number {
  const file = openSync(path, appending, 0o600)
  try {
    requirePrivateStats(path, fstatSync(file), 'file')
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** All methods are synchronous, and throw what the file system throws. After `close` the others throw. */
export class ChainedFile {
  readonly #options: ChainedFileOptions
  #file: number
  /** The file's size after our last write; -1 if the end must be searched. */
  #size = -1
  #lookedAt: number
  #end: ChainEnd = { seq: 0, hash: firstHash }
  #isWhole = true
  #isClosed = false

  constructor(options: ChainedFileOptions) {
    this.#options = options
    this.#lookedAt = options.clock.monotonic()
    this.#file = openPrivate(options.path)
  }

  /**
   * Appends entries in one write. An empty file that continues another begins with a line that says so. Throws if the
   * entries were not written whole.
   */
  append(entries: readonly Entry[]): void {
    this.#requireOpen()
    const { lock } = this.#options
    if (lock === undefined) this.#appendAlone(entries)
    else lock.hold(() => this.#appendAlone(entries))
  }

  #appendAlone(given: readonly Entry[]): void {
    const { path, clock, replica, lock, lookMs, requireRoom } = this.#options
    const isDue = clock.monotonic() - this.#lookedAt >= lookMs
    if (isDue) this.#lookedAt = clock.monotonic()
    if (this.#size < 0 || isDue) this.#findEnd()
    const continues = this.#size === 0 && this.#end.seq > 0
    const entries = continues ? [{ event: 'log.continued', fields: {} }, ...given] : given
    const time = timestampOf(clock)
    let { seq, hash } = this.#end
    // A line truncated by a crash stays as it is; `audit verify` reports it.
    let text = this.#isWhole ? '' : '\n'
    for (const entry of entries) {
      seq += 1
      const line = formatLine({ seq, prev: hash, replica }, time, entry)
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = utf8Of(text)
    requireRoom?.(bytes.length)
    const before = this.#size
    this.#size = -1
    if (writeSync(this.#file, bytes) !== bytes.length) throw new Error(`${path} was not written whole`)
    this.#size = before + bytes.length
    this.#isWhole = true
    this.#end = { seq, hash }
    lock?.keep(this.#end)
  }

  /**
   * Begins the file under this name if the former one was moved away, so that the chain goes on there. Without a lock
   * only this process knows the end of the chain, and the next one finds it in the file alone.
   */
  continue(): void {
    this.#requireOpen()
    if (this.#options.lock !== undefined) return
    this.#findEnd()
    if (this.#size === 0 && this.#end.seq > 0) this.append([])
  }

  /** Closes a file that was moved away, and opens the one under its name. */
  reopen(): void {
    this.#requireOpen()
    // Some lines of a write that failed may be in the former file.
    if (this.#size < 0) this.#readEnd()
    const next = openPrivate(this.#options.path)
    closeSync(this.#file)
    this.#file = next
    this.#size = -1
  }

  close(): void {
    this.#isClosed = true
    closeSync(this.#file)
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error(`${this.#options.path} is closed`)
  }

  /** Finds the end of the chain in the file under this name, unless nobody else has written to it. */
  #findEnd(): void {
    const named = lstatSync(this.#options.path, { throwIfNoEntry: false })
    const { ino, dev, size } = fstatSync(this.#file)
    if (named?.ino !== ino || named.dev !== dev) this.reopen()
    else if (size === this.#size) return
    this.#readEnd()
    // A new, emptied or truncated file does not contain the end of the chain; the lock does.
    const kept = this.#options.lock?.end()
    if (kept !== undefined && kept.seq >= this.#end.seq) this.#end = kept
  }

  /** Searches the tail of the open file for its last whole entry. */
  #readEnd(): void {
    const { size } = fstatSync(this.#file)
    const tail = Buffer.alloc(Math.min(size, auditTailBytes))
    readSync(this.#file, tail, 0, tail.length, size - tail.length)
    const text = tail.toString()
    const found = text.split('\n').reduceRight<ChainEnd | undefined>((last, line) => last ?? parseLine(line), undefined)
    if (found !== undefined && found.seq > this.#end.seq) this.#end = { seq: found.seq, hash: found.hash }
    this.#isWhole = size === 0 || text.endsWith('\n')
    this.#size = size
  }
}
