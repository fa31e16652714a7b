/** Where the native addon is unpacked: only our own file with these very bytes is taken, and nothing piles up. */

import { expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { unpack } from '../../../src/storage/lmdb/addon.ts'
import { isHere } from '../../support/needs.ts'

const bytes = Buffer.from('an addon, as far as this test goes')

function folder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'postern-addon-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

function expectWhole(file: string): void {
  const found = lstatSync(file)
  expect({ isFile: found.isFile(), mode: found.mode & 0o777, uid: found.uid }).toEqual({
    isFile: true,
    mode: 0o500,
    uid: process.getuid?.() ?? 0,
  })
  expect(readFileSync(file)).toEqual(bytes)
}

test('it is there whole, for its owner only, and the next one takes it as it is', () => {
  using place = folder()
  const file = unpack(bytes, place.path)
  expectWhole(file)
  const { ino } = lstatSync(file)
  expect(unpack(bytes, place.path)).toBe(file)
  expect(lstatSync(file).ino).toBe(ino)
})

const planted: [what: string, plant: (file: string, elsewhere: string) => void][] = [
  ['other bytes of the same length', (file) => writeFileSync(file, Buffer.alloc(bytes.length), { mode: 0o500 })],
  ['a part of it', (file) => writeFileSync(file, bytes.subarray(5), { mode: 0o500 })],
  [
    'a file that others can write to',
    (file) => {
      writeFileSync(file, bytes)
      chmodSync(file, 0o722)
    },
  ],
  [
    'a link to a file with the same bytes',
    (file, elsewhere) => {
      writeFileSync(elsewhere, bytes, { mode: 0o500 })
      symlinkSync(elsewhere, file)
    },
  ],
  [
    'a link to a file with other bytes',
    (file, elsewhere) => {
      writeFileSync(elsewhere, 'mine')
      symlinkSync(elsewhere, file)
    },
  ],
]
for (const [what, plant] of planted) {
  test(`${what} in its place is replaced and not followed`, () => {
    using place = folder()
    using other = folder()
    const elsewhere = join(other.path, 'file')
    const file = unpack(bytes, place.path)
    rmSync(file)
    plant(file, elsewhere)
    const before = existsSync(elsewhere) ? readFileSync(elsewhere) : undefined
    expect(unpack(bytes, place.path)).toBe(file)
    expectWhole(file)
    if (before !== undefined) expect(readFileSync(elsewhere)).toEqual(before)
  })
}

test.if(isHere('root'))('the same bytes in a file of somebody else are replaced (needs root)', () => {
  using place = folder()
  const file = unpack(bytes, place.path)
  chownSync(file, 65_534, 65_534)
  expect(unpack(bytes, place.path)).toBe(file)
  expectWhole(file)
})

test('what cannot be replaced is an error that names it', () => {
  using place = folder()
  const file = unpack(bytes, place.path)
  rmSync(file)
  mkdirSync(join(file, 'in it'), { recursive: true })
  expect(() => unpack(bytes, place.path)).toThrow(`LMDB's library cannot be unpacked to ${file}: `)
  expect(readdirSync(place.path)).toEqual([basename(file)])
})

test('those of other versions and drafts of killed processes go; nothing else does', () => {
  using place = folder()
  const old = unpack(Buffer.from('an earlier version'), place.path)
  writeFileSync(`${old}.4711`, 'half')
  writeFileSync(join(place.path, 'data.mdb'), 'data')
  const file = unpack(bytes, place.path)
  expect(readdirSync(place.path).sort()).toEqual(['data.mdb', basename(file)])
})
