/** Bytes that a disk gives back otherwise than it was given them. */

import { expect, test } from 'bun:test'
import { appendChecksum, noKey, tryVerifyChecksum, verifyChecksum } from '../../../src/storage/lmdb/value-checksum.ts'

const key = Buffer.from('cacme\0notes')
const value = Buffer.from('{"name":"Notes"}')
/** The bytes are lent: what is kept is a copy. */
const stored = (ofKey: Uint8Array = key, of: Uint8Array = value) => Buffer.from(appendChecksum(ofKey, of))

test('a value comes back as it was given, an empty one too', () => {
  expect(verifyChecksum(key, stored()).equals(value)).toBe(true)
  expect(verifyChecksum(key, stored(key, Buffer.alloc(0))).length).toBe(0)
  expect(verifyChecksum(noKey, stored(noKey)).equals(value)).toBe(true)
})

test('a single bit that is another is told, wherever it is', () => {
  const bytes = stored()
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const damaged = Buffer.from(bytes)
    damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7))
    expect(tryVerifyChecksum(key, damaged)).toBeUndefined()
    expect(() => verifyChecksum(key, damaged)).toThrow('a record is damaged: run `postern store verify`')
  }
})

test('a value that was cut anywhere is told', () => {
  const bytes = stored()
  for (let length = 0; length < bytes.length; length += 1)
    expect(tryVerifyChecksum(key, bytes.subarray(0, length))).toBeUndefined()
})

test('a record that lies under the key of another is told', () => {
  const bytes = stored()
  for (const other of [Buffer.from('cacme\0other'), Buffer.from('cacme\0note'), noKey])
    expect(tryVerifyChecksum(other, bytes)).toBeUndefined()
  expect(tryVerifyChecksum(key, stored(noKey))).toBeUndefined()
})

test('what is on disk reads the same in every version', () => {
  expect(stored().subarray(value.length).toString('hex')).toBe('1c27f0b865a9dff7')
  expect(stored(noKey).subarray(value.length).toString('hex')).toBe('dbb43fd7c3073500')
})
