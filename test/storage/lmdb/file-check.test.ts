import { describe, expect, test } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backUp } from '../../../src/maintenance/backup.ts'
import { checkFile, treeDepthMax } from '../../../src/storage/lmdb/file-check.ts'
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

/** Files made byte by byte, of the smallest pages: what lies just within a bound is sound, and just beyond it is not. */
describe('of the layout', () => {
  const small = 512
  const none = 2n ** 64n - 1n

  interface MetaPage {
    readonly transaction?: number
    readonly lastPage?: number
    readonly free?: bigint
    readonly main?: bigint
    readonly pageSize?: number
    readonly magic?: number
  }
  /** The last page number says by itself that the file is short, so its trees are walked. */
  function metaPage(given: MetaPage = {}): Buffer {
    const { transaction = 1, lastPage = 1000, free = none, main = none, pageSize = small, magic = 0xbeefc0de } = given
    const bytes = Buffer.alloc(pageSize)
    bytes.writeUInt32LE(magic, 0x18)
    bytes.writeUInt32LE(pageSize, 0x30)
    bytes.writeBigUInt64LE(free, 0x58)
    bytes.writeBigUInt64LE(main, 0x88)
    bytes.writeBigUInt64LE(BigInt(lastPage), 0x90)
    bytes.writeBigUInt64LE(BigInt(transaction), 0x98)
    return bytes
  }
  /** A page of the tree, with a slot for the place of each of its nodes. */
  function treePage(number: number, flags: number, places: readonly number[]): Buffer {
    const bytes = Buffer.alloc(small)
    bytes.writeBigUInt64LE(BigInt(number), 0)
    bytes.writeUInt16LE(flags, 18)
    bytes.writeUInt16LE(places.length * 2, 20)
    for (const [index, place] of places.entries()) bytes.writeUInt16LE(place - 24, 24 + index * 2)
    return bytes
  }
  function branch(number: number, children: readonly number[]): Buffer {
    const places = children.map((_, index) => small - 8 * (index + 1))
    const bytes = treePage(number, 1, places)
    for (const [index, child] of children.entries()) bytes.writeUInt32LE(child, places[index] as number)
    return bytes
  }
  /** A leaf with one node at this place, and what stands in its data. */
  function leaf(number: number, place: number, nodeFlags: number, keyBytes = 0, words: readonly bigint[] = []): Buffer {
    const bytes = treePage(number, 2, [place])
    bytes.writeUInt16LE(nodeFlags, place + 4)
    bytes.writeUInt16LE(keyBytes, place + 6)
    for (const [index, word] of words.entries()) {
      const at = place + 8 + keyBytes + index * 8
      if (at + 8 <= small) bytes.writeBigUInt64LE(word, at)
    }
    return bytes
  }
  const plain = (number: number) => leaf(number, 400, 0)

  function isSound(...pages: readonly Buffer[]): boolean {
    using place = workplace()
    const file = join(place.folder, 'data.mdb')
    writeFileSync(file, Buffer.concat(pages))
    try {
      checkFile(file)
      return true
    } catch (error) {
      expect((error as Error).message).toBe(`${file} is damaged: restore it from a backup`)
      return false
    }
  }
  /** A file whose main tree begins on page 2. */
  const isTreeSound = (...pages: readonly Buffer[]) => {
    const meta = metaPage({ main: 2n })
    return isSound(meta, meta, ...pages)
  }

  test('both meta pages must be there, and be LMDB’s', () => {
    expect(isSound(metaPage(), metaPage())).toBe(true)
    expect(isSound(metaPage(), metaPage().subarray(0, 0xa0))).toBe(true)
    expect(isSound(metaPage(), metaPage().subarray(0, 0x9f))).toBe(false)
    expect(isSound(metaPage({ magic: 1 }), metaPage())).toBe(false)
    expect(isSound(metaPage(), metaPage({ magic: 1 }))).toBe(false)
  })

  test('nothing stays open: to close it later would release the locks of LMDB', () => {
    const descriptors = () => readdirSync('/dev/fd').length
    const before = descriptors()
    expect([isSound(metaPage(), metaPage()), isSound(metaPage()), descriptors()]).toEqual([true, false, before])
  })

  test('pages are of 512 bytes to 65,536', () => {
    for (const [pageSize, sound] of [
      [511, false],
      [512, true],
      [65_536, true],
      [65_537, false],
    ] as const) {
      const meta = metaPage({ pageSize })
      expect({ pageSize, sound: isSound(meta, meta) }).toEqual({ pageSize, sound })
    }
  })

  test('the later transaction counts, on whichever page it is', () => {
    const good = metaPage({ transaction: 7, main: none })
    const lost = metaPage({ transaction: 6, main: 9n })
    expect([isSound(good, lost), isSound(lost, good)]).toEqual([true, true])
    const later = metaPage({ transaction: 8, main: 9n })
    expect([isSound(good, later), isSound(later, good)]).toEqual([false, false])
  })

  test('both trees are walked, the list of free pages and the records', () => {
    for (const name of ['free', 'main']) {
      const meta = metaPage({ [name]: 2n })
      expect({ name, sound: isSound(meta, meta, plain(2)) }).toEqual({ name, sound: true })
      expect({ name, sound: isSound(meta, meta, plain(3)) }).toEqual({ name, sound: false })
    }
  })

  test('a file that has its last page is not walked', () => {
    const broken = Buffer.alloc(small)
    const ends = (lastPage: number) => {
      const meta = metaPage({ lastPage, main: 2n })
      return isSound(meta, meta, broken)
    }
    expect([ends(2), ends(3)]).toEqual([true, false])
  })

  test('a page is there whole, says its own number, and is a branch or a leaf', () => {
    expect(isTreeSound(plain(2))).toBe(true)
    expect(isTreeSound()).toBe(false)
    expect(isTreeSound(plain(2).subarray(0, -1))).toBe(false)
    for (const flags of [0, 4, 8]) expect(isTreeSound(treePage(2, flags, []))).toBe(false)
    for (const flags of [1, 2, 2 | 4]) expect(isTreeSound(treePage(2, flags, []))).toBe(true)
  })

  test('children are looked at, and each is within the file', () => {
    expect(isTreeSound(branch(2, [3, 4]), plain(3), plain(4))).toBe(true)
    expect(isTreeSound(branch(2, [3, 4]), plain(3), plain(5))).toBe(false)
    expect(isTreeSound(branch(2, [3, 5]), plain(3), plain(4))).toBe(false)
    // The high bits of a page number stand where a leaf has its flags.
    const high = branch(2, [3])
    high.writeUInt16LE(1, small - 8 + 4)
    expect(isTreeSound(high, plain(3))).toBe(false)
  })

  test('as many slots as a page has room for', () => {
    const most = (small - 24) / 2
    const slots = (count: number) =>
      treePage(
        2,
        2,
        Array.from({ length: Math.min(count, most) }, () => 200),
      )
    // All of them name one node, that lies among them.
    const full = slots(most)
    for (let at = 24; at < small; at += 2) full.writeUInt16LE(0, at)
    expect(isTreeSound(full)).toBe(true)
    full.writeUInt16LE((most + 1) * 2, 20)
    expect(isTreeSound(full)).toBe(false)
  })

  test('a node’s head is within its page', () => {
    expect(isTreeSound(leaf(2, small - 8, 0))).toBe(true)
    expect(isTreeSound(treePage(2, 2, [small - 7]))).toBe(false)
  })

  test('a large value is within the file to its last page', () => {
    const large = (first: bigint, count: bigint, place = 400, keyBytes = 5) =>
      isTreeSound(leaf(2, place, 1, keyBytes, [first, 0n, count]), Buffer.alloc(small), Buffer.alloc(small))
    // Pages 3 and 4.
    expect([large(3n, 2n), large(3n, 3n), large(4n, 1n), large(5n, 1n)]).toEqual([true, false, true, false])
    // Where it lies stands in 24 bytes.
    expect([large(3n, 2n, small - 8 - 24, 0), large(3n, 2n, small - 8 - 23, 0)]).toEqual([true, false])
  })

  test('a tree below a record is walked, unless it is empty', () => {
    const below = (root: bigint, page: Buffer, place = 400, keyBytes = 5) =>
      isTreeSound(leaf(2, place, 2, keyBytes, [0n, 0n, 0n, 0n, 0n, root]), page)
    expect([below(none, plain(9)), below(3n, plain(3)), below(3n, plain(9))]).toEqual([true, true, false])
    expect([below(3n, plain(3), small - 8 - 48, 0), below(3n, plain(3), small - 8 - 47, 0)]).toEqual([true, false])
  })

  test('a record of another kind has nothing below it', () => {
    expect(isTreeSound(leaf(2, small - 8, 4))).toBe(true)
  })

  test('a tree is so deep and no deeper', () => {
    const chain = (depth: number) => [
      ...Array.from({ length: depth }, (_, at) => branch(2 + at, [3 + at])),
      plain(2 + depth),
    ]
    expect(isTreeSound(...chain(treeDepthMax))).toBe(true)
    expect(isTreeSound(...chain(treeDepthMax + 1))).toBe(false)
    const nested = (depth: number) => [
      ...Array.from({ length: depth }, (_, at) => leaf(2 + at, 400, 2, 0, [0n, 0n, 0n, 0n, 0n, BigInt(3 + at)])),
      plain(2 + depth),
    ]
    expect(isTreeSound(...nested(treeDepthMax))).toBe(true)
    expect(isTreeSound(...nested(treeDepthMax + 1))).toBe(false)
  })

  test('no more pages are visited than there are', () => {
    // Four pages: the root and three visits of one child.
    expect(isTreeSound(branch(2, [3, 3, 3]), plain(3))).toBe(true)
    expect(isTreeSound(branch(2, [3, 3, 3, 3]), plain(3))).toBe(false)
  })
})
