/**
 * Bytes that wait for their turn: in memory while they are few, past that in a file that has no name, so that it
 * goes with the process however that ends.
 */

import { closeSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../errors.ts'
import { spoolChunkBytes, spoolMemoryBytesMax } from '../../limits.ts'
import { writeWhole } from '../../storage/write-whole.ts'

export interface Spool extends Disposable {
  /** Room for an entry, to be filled before the next: in `bytes` from `start` on. */
  add(length: number): { readonly bytes: Buffer; readonly start: number; readonly position: number }
  /** The caller's to keep. The faster the more neighbours follow each other. */
  read(position: number, length: number): Buffer
}

/** The file is made in `folder`, when there is one. */
export function createSpool(folder: string | undefined): Spool {
  const held: Buffer[] = []
  let tail = Buffer.allocUnsafeSlow(spoolChunkBytes)
  /** Of the tail. */
  let used = 0
  /** Of all chunks before the tail, each filled up to its end. */
  let before = 0
  let descriptor: number | undefined
  let window: { readonly start: number; readonly bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) }

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
    // Chunks are as long as each other but the ones that a large entry cut short: few enough to be walked.
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
        // One that follows the last: so will others.
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

/** What is read for an entry that does not follow the last: most are shorter. */
const nearBytes = 4096

function openNameless(folder: string): number {
  const path = join(folder, `.fixtures-${process.pid}`)
  // Of a process that was killed between the next two lines.
  rmSync(path, { force: true })
  const descriptor = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return descriptor
}
