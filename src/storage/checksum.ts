/**
 * Every value in LMDB ends with a checksum of what stands before it, looked at whenever it is read: LMDB trusts
 * its file, and a disk that gives back other bytes than it was given must not become an answer. XXH3 against
 * accidents, half a microsecond for 16 kB; nobody who can write the file is kept out by it.
 */

import { asBuffer, StoreError } from './store.ts'

const checksumBytes = 8

export function withChecksum(value: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafeSlow(value.length + checksumBytes)
  bytes.set(value)
  bytes.writeBigUInt64LE(Bun.hash.xxHash3(value), value.length)
  return bytes
}

/** The same memory without the checksum. Throws StoreError `damaged`. */
export function checked(bytes: Uint8Array): Buffer {
  const value = intactValue(bytes)
  if (value === undefined) throw new StoreError('damaged', 'a record is damaged: run  postern verify')
  return value
}

/** Undefined where the checksum is another. */
export function intactValue(bytes: Uint8Array): Buffer | undefined {
  const end = bytes.length - checksumBytes
  if (end < 0) return undefined
  const buffer = asBuffer(bytes)
  const value = buffer.subarray(0, end)
  return Bun.hash.xxHash3(value) === buffer.readBigUInt64LE(end) ? value : undefined
}
