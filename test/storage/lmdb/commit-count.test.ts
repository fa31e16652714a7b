/** The number of the last transaction, as LMDB's lock file says it. */

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { openCommitCount } from '../../../src/storage/lmdb/commit-count.ts'
import { workplace } from '../../support/workplace.ts'

/** The head of a lock file in the byte order of this machine. */
function head(transaction: bigint, magic = 0xbeefc0de): Buffer {
  const bytes = Buffer.alloc(16)
  if (endianness() === 'LE') {
    bytes.writeUInt32LE(magic, 0)
    bytes.writeBigUInt64LE(transaction, 8)
  } else {
    bytes.writeUInt32BE(magic, 0)
    bytes.writeBigUInt64BE(transaction, 8)
  }
  return bytes
}

test('the count is read again each time, past 32 bits too', () => {
  using place = workplace()
  const file = join(place.folder, 'lock.mdb')
  writeFileSync(file, head(7n))
  const count = openCommitCount(place.folder)
  expect(count()).toBe(7)
  // In place, as LMDB does through its mapping.
  writeFileSync(file, head(8n), { flag: 'r+' })
  expect(count()).toBe(8)
  writeFileSync(file, head(5n * 2n ** 32n + 2n ** 32n - 1n), { flag: 'r+' })
  expect(count()).toBe(6 * 2 ** 32 - 1)
})

test('a file that is not there or too short gets the bytes to be mapped, and one that has them is left alone', () => {
  for (const [length, after] of [
    [undefined, 16],
    [0, 16],
    [15, 31],
    [16, 16],
    [17, 17],
  ] as const) {
    using place = workplace()
    const file = join(place.folder, 'lock.mdb')
    const before = Buffer.alloc(length ?? 0, 'x')
    if (length !== undefined) writeFileSync(file, before)
    // It is no lock file of LMDB yet.
    expect(openCommitCount(place.folder)()).toBeUndefined()
    expect({ length, after: statSync(file).size }).toEqual({ length, after })
    expect(readFileSync(file).subarray(0, before.length).equals(before)).toBe(true)
  }
})

test('a file of another format has no count', () => {
  using place = workplace()
  writeFileSync(join(place.folder, 'lock.mdb'), head(7n, 0xbeefc0df))
  expect(openCommitCount(place.folder)()).toBeUndefined()
})

test('no descriptor stays open: to close it later would release the locks of LMDB', () => {
  using place = workplace()
  const descriptors = () => readdirSync('/dev/fd').length
  const before = descriptors()
  const count = openCommitCount(place.folder)
  expect([descriptors(), count()]).toEqual([before, undefined])
})
