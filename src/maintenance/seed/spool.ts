/**
 * Entries of bytes that are read back later: in memory or, with a folder, in a file there. The file has no name, so the
 * system deletes it when the process ends, even if it is killed.
 */

import { closeSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../errors.ts'
import { writeWhole } from '../../storage/write-whole.ts'

/** Where an entry is. Entries do not cross chunks. */
export interface Place {
  readonly chunk: number
  readonly start: number
  readonly length: number
}

const chunkBytes = 1024 * 1024

/** Dispose it to close the file. Entries can be read until then. */
export class Spool implements Disposable {
  readonly #chunks: Buffer[] = []
  /** Where each chunk begins in the file. */
  readonly #starts: number[] = []
  #used = 0
  #written = 0
  readonly #file: number | undefined

  /** Throws CommandError if no file can be made in the folder. */
  constructor(folder?: string) {
    this.#file = folder === undefined ? undefined : openNameless(folder)
  }

  /** Throws CommandError if the file cannot be written. */
  add(bytes: Uint8Array): Place {
    let chunk = this.#chunks.length - 1
    if (chunk < 0 || this.#used + bytes.length > (this.#chunks[chunk] as Buffer).length) {
      this.#spill()
      chunk = this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(chunkBytes, bytes.length))) - 1
      this.#used = 0
    }
    const start = this.#used
    this.#chunks[chunk]?.set(bytes, start)
    this.#used += bytes.length
    return { chunk, start, length: bytes.length }
  }

  read({ chunk, start, length }: Place): Buffer {
    const at = this.#starts[chunk]
    if (this.#file === undefined || at === undefined)
      return (this.#chunks[chunk] as Buffer).subarray(start, start + length)
    const bytes = Buffer.allocUnsafe(length)
    for (let filled = 0; filled < length; ) {
      const read = readSync(this.#file, bytes, filled, length - filled, at + start + filled)
      if (read === 0) throw new Error('the spool ends too early')
      filled += read
    }
    return bytes
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }

  /** Writes the last chunk to the file, if there is one, and forgets its bytes. */
  #spill(): void {
    const last = this.#chunks.length - 1
    if (this.#file === undefined || last < 0) return
    const bytes = this.#chunks[last] as Buffer
    try {
      writeWhole(this.#file, bytes.subarray(0, this.#used))
    } catch (error) {
      throw new CommandError(`cannot write to the data folder: ${(error as Error).message}`, 1, { cause: error })
    }
    this.#starts[last] = this.#written
    this.#written += this.#used
    this.#chunks[last] = nothing
  }
}

const nothing = Buffer.alloc(0)

/** Opens a new file and unlinks it at once. `wx`: a file or link placed there by someone else is not opened. */
function openNameless(folder: string): number {
  const path = join(folder, `.fixtures-${process.pid}`)
  // Left by a process with the same id that was killed between open and unlink.
  rmSync(path, { force: true })
  const descriptor = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return descriptor
}
