/** A file of chained lines (`audit-chain.ts`), which may be moved away at any time, and may end in half a line. */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, writeSync } from 'node:fs'
import { auditTailBytes } from '../limits.ts'
import { type ChainEnd, firstHash, formatLine, parseLine } from './audit-chain.ts'

/** An entry, without what every line has and what links it to the others. */
export interface Entry {
  readonly event: string
  readonly fields: object
}

/** What every line of one write has. */
export interface LineContext {
  /** ISO 8601. */
  readonly time: string
  /** Added if the store is shared with others that have logs of their own. */
  readonly replica?: string
}

/** The end of the chain in a file, and whether the file ends with a whole line. */
export interface FileEnd {
  readonly end: ChainEnd
  readonly isWhole: boolean
}

/** Like 'a+', but does not follow a symbolic link, whose target may not be ours to write. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

/** All methods are synchronous, and throw what the file system throws. */
export class ChainedFile {
  readonly #path: string
  #file: number

  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, appending, 0o600)
  }

  get size(): number {
    return fstatSync(this.#file).size
  }

  /** Appends entries in order after `end`, in one write. Returns the new end. Throws if they were not written whole. */
  append(entries: readonly Entry[], { end, isWhole }: FileEnd, { time, replica }: LineContext): ChainEnd {
    let { seq, hash } = end
    // A line truncated by a crash stays as it is; `audit verify` reports it.
    let text = isWhole ? '' : '\n'
    for (const { event, fields } of entries) {
      seq += 1
      const line = formatLine({ seq, time, event, ...fields, ...(replica && { replica }), prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    if (writeSync(this.#file, bytes) !== bytes.length) throw new Error(`${this.#path} was not written whole`)
    return { seq, hash }
  }

  /** The last whole entry in the file's tail. Number 0 if there is none. */
  end(): FileEnd {
    const { size } = this
    const tail = Buffer.alloc(Math.min(size, auditTailBytes))
    readSync(this.#file, tail, 0, tail.length, size - tail.length)
    const text = tail.toString()
    const isWhole = size === 0 || text.endsWith('\n')
    for (const line of text.split('\n').reverse()) {
      const parsed = parseLine(line)
      if (parsed !== undefined) return { end: { seq: parsed.seq, hash: parsed.hash }, isWhole }
    }
    return { end: { seq: 0, hash: firstHash }, isWhole }
  }

  /** Whether the open file is still the one under its name. */
  isStillNamed(): boolean {
    const named = lstatSync(this.#path, { throwIfNoEntry: false })
    const { ino, dev } = fstatSync(this.#file)
    return named?.ino === ino && named.dev === dev
  }

  /** Opens the file under its name, and closes the other. */
  reopen(): void {
    const next = openSync(this.#path, appending, 0o600)
    closeSync(this.#file)
    this.#file = next
  }

  close(): void {
    closeSync(this.#file)
  }
}
