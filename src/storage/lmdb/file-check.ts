/**
 * Checks LMDB's file before it is opened. LMDB trusts its file: a truncated or overwritten one crashes the process
 * without a message. Checked here: the two meta pages and the length. Damage inside is found by `postern store verify`.
 *
 * The layout is that of lmdb-js's LMDB (`mdb.c`: MDB_page_header, MDB_meta, MDB_db, MDB_node), little-endian.
 */

import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { StoreError } from '../store.ts'

/** Attempts to check a file while another process writes it. Past it: taken to be intact. */
const fileCheckTriesMax = 5
/** LMDB's own bound on the depth of a tree. Past it: the file is damaged. */
export const treeDepthMax = 32

/** Throws StoreError `fatal` for a file that would crash LMDB. A missing file is accepted. */
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
 * LMDB's last page number may lie beyond the end of the file: pages that one transaction allocated and freed are never
 * written. So a shorter file is damaged only if a page in use is missing. Only such a file pays for the walk through
 * the trees, which reads 30 MB for a million connections.
 */
function isWhole(descriptor: number): boolean {
  for (let tries = 0; tries < fileCheckTriesMax; tries += 1) {
    const meta = readMeta(descriptor)
    if (meta === undefined) return false
    const { size } = fstatSync(descriptor)
    const pages = Math.floor(size / meta.pageSize)
    if (meta.lastPage < pages) return true
    // Every page belongs to one tree and is visited once. `left` stops the endless walk in a file with a cycle.
    const file = { descriptor, pageSize: meta.pageSize, pages, left: pages }
    if (meta.roots.every((root) => isTreeWhole(file, root))) return true
    // Another process may have reused these pages during the walk. If the transaction is unchanged, none did, and the
    // damage is real.
    if (readMeta(descriptor)?.transaction === meta.transaction) return false
  }
  // Another process commits faster than we can check, so the file is in working order.
  return true
}

const pageHeaderBytes = 24
const metaBytes = 0xa0
const metaMagic = 0xbeefc0de
/** The root page number of an empty tree. */
const noPage = 2n ** 64n - 1n

/** The meta page of the last transaction; undefined if one of the two is invalid. */
function readMeta(descriptor: number) {
  const first = readMetaAt(descriptor, 0)
  const second = first && readMetaAt(descriptor, first.pageSize)
  if (first === undefined || second === undefined) return undefined
  return first.transaction > second.transaction ? first : second
}

function readMetaAt(descriptor: number, at: number) {
  const head = Buffer.alloc(metaBytes)
  if (readSync(descriptor, head, 0, metaBytes, at) < metaBytes) return undefined
  const pageSize = head.readUInt32LE(0x30)
  if (head.readUInt32LE(0x18) !== metaMagic || pageSize < 512 || pageSize > 65_536) return undefined
  // Of the free list and of the main database, which holds the roots of the named ones.
  const roots = [0x58, 0x88].map((place) => head.readBigUInt64LE(place))
  return {
    pageSize,
    lastPage: Number(head.readBigUInt64LE(0x90)),
    transaction: head.readBigUInt64LE(0x98),
    roots: roots.filter((root) => root !== noPage).map(Number),
  }
}

const branchFlag = 0x01
const leafFlag = 0x02
const nodeHeaderBytes = 8
const overflowNode = 0x01
const databaseNode = 0x02

interface Walk {
  readonly descriptor: number
  readonly pageSize: number
  /** Number of complete pages in the file. */
  readonly pages: number
  /** How many pages may still be visited. */
  left: number
}

/** True if every page of the tree, overflow pages included, lies within the file. */
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
      // In a branch node this field is not flags but the high bits of the page number.
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
