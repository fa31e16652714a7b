/** The pictures of the console in `docs/images`: those that `make screenshots` takes, and of the console as it is. */

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { files } from './rooms.ts'
import { hashFile, hashOfShown, pictures } from './shown.ts'

/** Bytes of all together: they are in the repository and in the executable. Past it: fewer rooms, or fewer widths. */
const bytesMax = 1_000_000

test('the pictures show the console and the sample as they are (make screenshots)', () => {
  expect(readFileSync(hashFile, 'utf8')).toBe(`${hashOfShown()}\n`)
})

test('there is each picture, no other, and they are small', () => {
  const found = readdirSync(pictures).filter((file) => file.startsWith('console-'))
  expect(found.sort()).toEqual([...files].sort())
  const bytes = found.map((file) => statSync(join(pictures, file)).size)
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(bytesMax)
})
