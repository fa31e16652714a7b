import { expect, test } from 'bun:test'
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../../../src/maintenance/backup.ts'
import { checkFile } from '../../../src/storage/lmdb/file-check.ts'
import { openLmdbStore } from '../../../src/storage/lmdb/store.ts'
import { workplace } from '../../support/workplace.ts'

const pageBytes = 4096
const names = Array.from({ length: 130 }, (_, i) => Buffer.from(`${'cnsx'[i % 4]}${1000 + i}`)).sort(Buffer.compare)

/** A file whose last pages were taken and given back by one transaction: LMDB never wrote them. */
async function writeShortFile(folder: string): Promise<string> {
  const store = openLmdbStore(folder)
  await store.load({ puts: names.map((key) => ({ key, value: Buffer.alloc(500, key) })) })
  await store.load({ puts: [{ key: Buffer.from('m1'), value: Buffer.from('owner') }], deletes: names })
  await store.close()
  return join(folder, 'data.mdb')
}

function lastPageOf(file: string): number {
  const bytes = readFileSync(file)
  const [newest = 0] = [0, pageBytes].sort((a, b) =>
    Number(bytes.readBigUInt64LE(b + 0x98) - bytes.readBigUInt64LE(a + 0x98)),
  )
  return Number(bytes.readBigUInt64LE(newest + 0x90))
}

test('a file that ends before the last page that LMDB counts is sound where those pages are in no use', async () => {
  using place = workplace()
  const file = await writeShortFile(place.folder)
  // Otherwise this would show nothing.
  expect(statSync(file).size / pageBytes).toBeLessThanOrEqual(lastPageOf(file))
  checkFile(file)
  const store = openLmdbStore(place.folder)
  expect(Buffer.from((await store.get(Buffer.from('m1'))) ?? '').toString()).toBe('owner')
  await store.close()
})

test('a file that was cut is reported, wherever a page in use is gone', async () => {
  using place = workplace()
  const store = openLmdbStore(place.folder)
  await store.load({ puts: names.map((key) => ({ key, value: Buffer.alloc(5000, key) })) })
  await store.close()
  // Without free pages: each one that is cut off is missed.
  const whole = join(place.folder, 'whole.bak')
  await backUp(place.folder, whole, 'secret')
  const { size } = statSync(whole)
  checkFile(whole)
  for (let length = 0; length < size; length += 1000) {
    const shortened = join(place.folder, 'cut')
    copyFileSync(whole, shortened)
    truncateSync(shortened, length)
    expect(() => checkFile(shortened)).toThrow('is damaged')
  }
})

test('a short file whose tree is not what LMDB writes is told', async () => {
  using place = workplace()
  const file = await writeShortFile(place.folder)
  const whole = readFileSync(file)
  const newest = whole.readBigUInt64LE(0x98) > whole.readBigUInt64LE(pageBytes + 0x98) ? 0 : pageBytes
  const root = Number(whole.readBigUInt64LE(newest + 0x88)) * pageBytes
  for (const [what, change] of Object.entries<(bytes: Buffer) => void>({
    'a root that is zeros': (bytes) => bytes.fill(0, root, root + pageBytes),
    'a root that is another page': (bytes) => bytes.writeBigUInt64LE(3n, root),
    'nodes past the page': (bytes) => bytes.writeUInt16LE(0xffff, root + 20),
    'a node past the page': (bytes) => bytes.writeUInt16LE(0xfff0, root + 24),
    'a meta page of zeros': (bytes) => bytes.fill(0, newest, newest + pageBytes),
    // A branch whose children are itself: looked at again and again, it would take until the end of days.
    'a tree that comes back to itself': (bytes) => {
      bytes.writeUInt16LE(0x01, root + 18)
      bytes.writeUInt16LE(200, root + 20)
      for (let node = 0; node < 100; node += 1) bytes.writeUInt16LE(1000, root + 24 + node * 2)
      bytes.writeUInt32LE(root / pageBytes, root + 1024)
      bytes.writeUInt32LE(0, root + 1028)
    },
    'a page size of none': (bytes) => bytes.writeUInt32LE(0, 0x30),
  })) {
    const bytes = Buffer.from(whole)
    change(bytes)
    const damaged = join(place.folder, 'damaged')
    writeFileSync(damaged, bytes)
    expect(() => checkFile(damaged), what).toThrow('is damaged')
  }
})
