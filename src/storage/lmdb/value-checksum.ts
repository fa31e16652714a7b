/** Every value in LMDB ends with its checksum, verified on every read: LMDB trusts its file. */

import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { type Key, StoreError } from '../store.ts'
import { createScratchBuffer } from './scratch-buffer.ts'

const checksumBytes = 8

/** The key to pass for a segment, whose keys are part of its value. */
export const noKey: Key = new Uint8Array(0)

/** The value and its checksum, borrowed until the next call: for a put inside a transaction, which copies them. */
export function appendChecksum(key: Key, value: Uint8Array): Buffer {
  const bytes = stored(value.length + checksumBytes)
  bytes.set(value)
  bytes.writeBigUInt64LE(checksumOf(key, value), value.length)
  return bytes
}

const stored = createScratchBuffer()

/** Verifies the checksum and returns the value, a view of the same memory. Throws StoreError `damaged`. */
export function verifyChecksum(key: Key, bytes: Uint8Array): Buffer {
  const value = tryVerifyChecksum(key, bytes)
  if (value === undefined) throw new StoreError('damaged', 'a record is damaged: run `postern store verify`')
  return value
}

/** Like `verifyChecksum`, but returns undefined if the checksum does not match. */
export function tryVerifyChecksum(key: Key, bytes: Uint8Array): Buffer | undefined {
  const end = bytes.length - checksumBytes
  if (end < 0) return undefined
  const buffer = asBuffer(bytes)
  const value = buffer.subarray(0, end)
  return checksumOf(key, value) === buffer.readBigUInt64LE(end) ? value : undefined
}
