/**
 * A spool: append-only bytes, in memory while they are few, and beyond that in an unlinked file. The file has no name,
 * so the system deletes it when the process ends, in whatever way.
 */

import { closeSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../errors.ts'
import { spoolChunkBytes, spoolMemoryBytesMax } from '../../limits.ts'
import { writeWhole } from '../../storage/write-whole.ts'

/** Dispose it to close the file. Positions remain valid until then. */
export interface Spool extends Disposable {
  /**
   * Reserves `length` bytes: `bytes` from `start` on. The caller must fill them before the next call. `position` is for
   * `read`.
   */
  add(length: number): { readonly bytes: Buffer; readonly start: number; readonly position: number }
  /** Reads an entry. The caller may keep the bytes. Fastest if neighbouring entries are read in order. */
  read(position: number, length: number): Buffer
}

/** `folder`: where to create the file. Without it, everything stays in memory. */
export function createSpool(folder: string | undefined): Spool {
  const held: Buffer[] = []
  let tail = Buffer.allocUnsafeSlow(spoolChunkBytes)
  /** Bytes used in the tail. */
  let used = 0
  /** Bytes in all chunks before the tail. A chunk is cut at its last entry, so there are no gaps. */
  let before = 0
  let descriptor: number | undefined
  /** The part of the file that was read last. Never reused as a buffer, so entries read from it stay valid. */
  let window: { readonly start: number; readonly bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) }

  /** Ends the tail. Below `spoolMemoryBytesMax` it is kept in memory, above that all chunks are written to the file. */
  function spill(): void {
    held.push(tail.subarray(0, used))
    before += used
    used = 0
    if (descriptor === undefined && (folder === undefined || before < spoolMemoryBytesMax)) {
      tail = Buffer.allocUnsafeSlow(spoolChunkBytes)
      return
    }
    try {
      const file = descriptor ?? openNameless(folder as string)
      descriptor = file
      for (const chunk of held) writeWhole(file, chunk)
    } catch (error) {
      throw new CommandError(`cannot write to ${folder}: ${(error as Error).message}`, 1, { cause: error })
    }
    held.length = 0
  }

  /** Reads up to `length` bytes; fewer at the end of the file. */
  function fromFile(file: number, position: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(length)
    let filled = 0
    while (filled < length) {
      const read = readSync(file, bytes, filled, length - filled, position + filled)
      if (read === 0) break
      filled += read
    }
    return bytes.subarray(0, filled)
  }

  function fromMemory(position: number, length: number): Buffer {
    // A linear search is enough: all chunks have about `spoolChunkBytes`, and with a folder `spoolMemoryBytesMax`
    // bounds their number.
    let start = 0
    for (const chunk of held) {
      if (position < start + chunk.length)
        return Buffer.from(chunk.subarray(position - start, position - start + length))
      start += chunk.length
    }
    return Buffer.from(tail.subarray(position - start, position - start + length))
  }

  return {
    add(length) {
      if (used + length > tail.length) spill()
      if (length > tail.length) tail = Buffer.allocUnsafeSlow(length)
      used += length
      return { bytes: tail, start: used - length, position: before + used - length }
    },
    read(position, length) {
      if (descriptor === undefined || position >= before)
        return fromMemory(position - (descriptor === undefined ? 0 : before), length)
      const end = window.start + window.bytes.length
      if (position < window.start || position + length > end) {
        // A read that continues from the last window will probably be followed by others: read ahead.
        const isNext = position >= window.start && position <= end
        window = {
          start: position,
          bytes: fromFile(descriptor, position, isNext ? spoolChunkBytes : Math.max(length, nearBytes)),
        }
        if (window.bytes.length < length) window = { start: position, bytes: fromFile(descriptor, position, length) }
      }
      return window.bytes.subarray(position - window.start, position - window.start + length)
    },
    [Symbol.dispose]() {
      if (descriptor !== undefined) closeSync(descriptor)
      descriptor = undefined
      held.length = 0
    },
  }
}

/** Bytes read for an entry out of order. Most entries are shorter. */
const nearBytes = 4096

/** Opens a new file and unlinks it at once. `wx`: a file or link placed there by someone else is not opened. */
function openNameless(folder: string): number {
  const path = join(folder, `.fixtures-${process.pid}`)
  // Left by a process with the same id that was killed between open and unlink.
  rmSync(path, { force: true })
  const descriptor = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return descriptor
}
