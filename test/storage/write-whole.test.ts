/** Writing all bytes to a file, and what happens to errors. */

import { expect, test } from 'bun:test'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../../src/storage/write-whole.ts'
import { workplace } from '../support/workplace.ts'

test('all bytes are written, after what was written before', () => {
  using place = workplace()
  const file = join(place.folder, 'file')
  const descriptor = openSync(file, 'w')
  writeWhole(descriptor, Buffer.from('a'))
  writeWhole(descriptor, Buffer.alloc(1e6, 'b'))
  closeSync(descriptor)
  expect(readFileSync(file, 'utf8')).toBe(`a${'b'.repeat(1e6)}`)
})

test('an error that waiting does not mend is thrown at once', () => {
  expect(() => writeWhole(1_000_000, Buffer.from('a'))).toThrow('EBADF')
})
