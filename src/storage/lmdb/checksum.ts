/**
 * Every value in LMDB ends with a checksum of its key and of what stands before it, looked at whenever it is read:
 * LMDB trusts its file, and a disk that gives back other bytes than it was given must not become an answer, nor
 * somebody's record another's. XXH3 against accidents, half a microsecond for 16 kB; nobody who can write the file
 * is kept out by it.
 */

import { asBuffer, type Key, StoreError } from '../store.ts'
import { createScratchBuffer } from './scratch-buffer.ts'

const checksumBytes = 8

/** For a segment: its keys are in its value. */
export const noKey: Key = new Uint8Array(0)

function checksumOf(key: Key, value: Uint8Array): bigint {
  const ofValue = Bun.hash.xxHash3(value)
  return key.length === 0 ? ofValue : ofValue ^ Bun.hash.xxHash3(key)
}

/** What is stored, for a put inside a transaction, which copies it: the bytes are lent until the next call. */
export function appendChecksum(key: Key, value: Uint8Array): Buffer {
  const bytes = stored(value.length + checksumBytes)
  bytes.set(value)
  bytes.writeBigUInt64LE(checksumOf(key, value), value.length)
  return bytes
}

const stored = createScratchBuffer()

/** The same memory without the checksum. Throws StoreError `damaged`. */
export function verifyChecksum(key: Key, bytes: Uint8Array): Buffer {
  const value = tryVerifyChecksum(key, bytes)
  if (value === undefined) throw new StoreError('damaged', 'a record is damaged: run `postern verify`')
  return value
}

/** Undefined where the checksum is another. */
export function tryVerifyChecksum(key: Key, bytes: Uint8Array): Buffer | undefined {
  const end = bytes.length - checksumBytes
  if (end < 0) return undefined
  const buffer = asBuffer(bytes)
  const value = buffer.subarray(0, end)
  return checksumOf(key, value) === buffer.readBigUInt64LE(end) ? value : undefined
}
