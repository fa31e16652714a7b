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
import { basename, join, resolve } from 'node:path'
import { loadAddon, unpack, unpackAddonIn } from '../../../src/storage/lmdb/addon.ts'
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

test('a draft that a killed process of the same number left is written anew, and nothing stays open', () => {
  using place = folder()
  const descriptors = () => readdirSync('/dev/fd').length
  const before = descriptors()
  const file = unpack(bytes, place.path)
  rmSync(file)
  writeFileSync(`${file}.${process.pid}`, 'half')
  expect(unpack(bytes, place.path)).toBe(file)
  expectWhole(file)
  expect(readdirSync(place.path)).toEqual([basename(file)])
  // Those of an earlier file of tests may be closed meanwhile.
  expect(descriptors()).toBeLessThanOrEqual(before)
})

test('it is there whole, for its owner only, and the next one takes it as it is', () => {
  using place = folder()
  const file = unpack(bytes, place.path)
  expectWhole(file)
  const { ino } = lstatSync(file)
  expect(unpack(bytes, place.path)).toBe(file)
  expect(lstatSync(file).ino).toBe(ino)
})

test('one that others may read and execute is taken as it is', () => {
  using place = folder()
  const file = unpack(bytes, place.path)
  chmodSync(file, 0o555)
  const { ino } = lstatSync(file)
  expect([unpack(bytes, place.path), lstatSync(file).ino]).toEqual([file, ino])
})

test('its mode is the same whatever the process masks', () => {
  using place = folder()
  const mask = process.umask(0o777)
  try {
    expectWhole(unpack(bytes, place.path))
  } finally {
    process.umask(mask)
  }
})

test('a folder that is not there is named', () => {
  using place = folder()
  const none = join(place.path, 'none')
  expect(() => unpack(bytes, none)).toThrow(`LMDB's library cannot be unpacked to ${none}`)
})

const planted: [what: string, plant: (file: string, elsewhere: string) => void][] = [
  ['other bytes of the same length', (file) => writeFileSync(file, Buffer.alloc(bytes.length), { mode: 0o500 })],
  ['a part of it', (file) => writeFileSync(file, bytes.subarray(5), { mode: 0o500 })],
  ...[0o720, 0o702].map((mode): [string, (file: string) => void] => [
    `a file that others can write to (${mode.toString(8)})`,
    (file) => {
      writeFileSync(file, bytes)
      chmodSync(file, mode)
    },
  ]),
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

const carried = resolve(import.meta.dir, `../../../node_modules/@lmdb/lmdb-linux-${process.arch}/node.napi.glibc.node`)

// Before the next: of a path that it has loaded, the system's loader reads no file again.
test.if(isHere('glibc'))(
  'one that cannot be loaded from memory is unpacked, and told if that fails too (needs glibc)',
  () => {
    using place = folder()
    using other = folder()
    unpackAddonIn(place.path)
    const loads = (content: Buffer) => {
      const file = join(other.path, 'addon')
      writeFileSync(file, content)
      return () => loadAddon(file)
    }
    const before = readdirSync('/proc/self/fd').length
    expect(loads(bytes)).toThrow(/^LMDB's library cannot be loaded: [^;]*$/)
    expect(readdirSync(place.path)).toEqual([expect.stringMatching(/^lmdb-[0-9a-f]{32}\.node$/)])
    // It needs a library that is not here.
    const library = Buffer.from(
      readFileSync(carried).toString('latin1').replaceAll('libstdc++.so.6', 'libstdc++.so.x'),
      'latin1',
    )
    expect(loads(library)).toThrow(/; install libstdc\+\+\.so\.x, which it needs$/)
    expect(readdirSync('/proc/self/fd').length).toBe(before)
  },
)

test.if(isHere('glibc'))('it is loaded from memory, and leaves no file and no descriptor behind (needs glibc)', () => {
  using place = folder()
  unpackAddonIn(place.path)
  const descriptors = () => readdirSync('/proc/self/fd').length
  const before = descriptors()
  expect(loadAddon(carried)).toHaveProperty('Env')
  expect([readdirSync(place.path), descriptors()]).toEqual([[], before])
})
