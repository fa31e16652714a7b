/**
 * A look at LMDB's file before it is opened. LMDB trusts its file: a cut or overwritten one ends the
 * process without a word. The two meta pages and the file's length are checked here; damage inside is for `postern
 * verify` to find.
 *
 * The layout is that of lmdb-js's LMDB (`mdb.c`: MDB_page_header, MDB_meta, MDB_db, MDB_node), little-endian.
 */

import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { fileCheckTriesMax, treeDepthMax } from '../../limits.ts'
import { StoreError } from '../store.ts'

/** Throws StoreError `fatal` for a file that LMDB would not survive. A file that is not there is fine. */
export function checkFile(file: string): void {
  if (!existsSync(file)) return
  const descriptor = openSync(file, 'r')
  try {
    if (!isWhole(descriptor)) throw new StoreError('fatal', `${file} is damaged: restore it from a backup`)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * The last page that LMDB counts may lie past the end of the file: pages that one transaction took and gave back are
 * never written. So a file that is shorter is damaged only where a page that is in use is missing. That takes a walk
 * through the trees, and only such a file pays for it: 30 MB are read of a store with a million connections.
 */
function isWhole(descriptor: number): boolean {
  for (let tries = 0; tries < fileCheckTriesMax; tries += 1) {
    const meta = readMeta(descriptor)
    if (meta === undefined) return false
    const { size } = fstatSync(descriptor)
    const pages = Math.floor(size / meta.pageSize)
    if (meta.lastPage < pages) return true
    // Each page is of one tree and stands there once: a file that says otherwise would be walked for ever.
    const file = { descriptor, pageSize: meta.pageSize, pages, left: pages }
    if (meta.roots.every((root) => isTreeWhole(file, root))) return true
    // Another process may have reused these pages meanwhile. Unless one did, they are what they are.
    if (readMeta(descriptor)?.transaction === meta.transaction) return false
  }
  // Another process has the file open, and commits faster than we can look: the file serves it well.
  return true
}

interface Meta {
  readonly pageSize: number
  readonly lastPage: number
  readonly transaction: bigint
  /** Of the free list, and of the main database, which holds the roots of the others. */
  readonly roots: readonly number[]
}

const pageHeaderBytes = 24
const metaBytes = 0xa0
const metaMagic = 0xbeefc0de
/** What stands for the root of an empty tree. */
const noPage = 2n ** 64n - 1n

/** Of the last transaction; undefined where one of the two meta pages is not what LMDB writes. */
function readMeta(descriptor: number): Meta | undefined {
  const metas: Meta[] = []
  let pageSize = 0
  for (const at of [0, 1]) {
    const head = Buffer.alloc(metaBytes)
    if (readSync(descriptor, head, 0, metaBytes, at * pageSize) < metaBytes) return undefined
    if (head.readUInt32LE(0x18) !== metaMagic) return undefined
    if (at === 0) pageSize = head.readUInt32LE(0x30)
    if (pageSize < 512 || pageSize > 65_536) return undefined
    const roots = [0x58, 0x88].map((place) => head.readBigUInt64LE(place))
    metas.push({
      pageSize,
      lastPage: Number(head.readBigUInt64LE(0x90)),
      transaction: head.readBigUInt64LE(0x98),
      roots: roots.filter((root) => root !== noPage).map(Number),
    })
  }
  const [first, second] = metas as [Meta, Meta]
  return first.transaction > second.transaction ? first : second
}

const branchFlag = 0x01
const leafFlag = 0x02
const nodeHeaderBytes = 8
const overflowNode = 0x01
const databaseNode = 0x02

interface Walk {
  readonly descriptor: number
  readonly pageSize: number
  /** Whole ones in the file. */
  readonly pages: number
  /** How many may still be looked at. */
  left: number
}

/** Does every page of the tree lie within the file? */
function isTreeWhole(walk: Walk, root: number, depth = 0): boolean {
  const { descriptor, pageSize, pages } = walk
  walk.left -= 1
  if (root >= pages || walk.left < 0 || depth > treeDepthMax) return false
  const page = Buffer.allocUnsafe(pageSize)
  if (readSync(descriptor, page, 0, pageSize, root * pageSize) < pageSize) return false
  if (Number(page.readBigUInt64LE(0)) !== root) return false
  const flags = page.readUInt16LE(18)
  const nodes = page.readUInt16LE(20) >> 1
  const isBranch = (flags & branchFlag) !== 0
  if (!isBranch && (flags & leafFlag) === 0) return false
  if (pageHeaderBytes + nodes * 2 > pageSize) return false
  for (let index = 0; index < nodes; index += 1) {
    const node = pageHeaderBytes + page.readUInt16LE(pageHeaderBytes + index * 2)
    if (node + nodeHeaderBytes > pageSize) return false
    const low = page.readUInt32LE(node)
    const nodeFlags = page.readUInt16LE(node + 4)
    if (isBranch) {
      // A branch has no flags: the page number goes on there.
      if (!isTreeWhole(walk, low + nodeFlags * 2 ** 32, depth + 1)) return false
      continue
    }
    const data = node + nodeHeaderBytes + page.readUInt16LE(node + 6)
    if ((nodeFlags & overflowNode) !== 0) {
      if (data + 24 > pageSize) return false
      const first = Number(page.readBigUInt64LE(data))
      const count = Number(page.readBigUInt64LE(data + 16))
      if (first + count > pages) return false
    } else if ((nodeFlags & databaseNode) !== 0) {
      if (data + 48 > pageSize) return false
      const below = page.readBigUInt64LE(data + 40)
      if (below !== noPage && !isTreeWhole(walk, Number(below), depth + 1)) return false
    }
  }
  return true
}
