/** Room on the disk. */

import { expect, test } from 'bun:test'
import { freeBytes, requireFreeSpace } from '../../../src/storage/free-space.ts'

const MB = 2 ** 20

test('what leaves the floor may be written, and what takes a byte of it may not', () => {
  const require = (bytes: number) => requireFreeSpace('/data', bytes, 10 * MB, () => 15 * MB)
  require(5 * MB)
  expect(() => require(5 * MB + 1)).toThrow(
    'the disk of /data has 15 MB left, and this write needs 16: free some space',
  )
})

test('a disk has as much as its system says', () => {
  expect(freeBytes('/')).toBeGreaterThan(0)
})
