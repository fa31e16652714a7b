/** LMDB opened, by whoever does: one set of settings, because several processes share the file. */

import type { Database, RootDatabase } from 'lmdb'
import { copyBytes, type Key } from '../store.ts'
import { unpackAddonIn } from './addon.ts'

/** Keys are our own bytes. lmdb-js compares past the end of a key, so eight zero bytes follow each. */
export const keyEncoder = {
  writeKey(key: Key, target: Buffer, start: number): number {
    target.set(key, start)
    const end = start + key.length
    target.fill(0, end, end + 8)
    return end
  },
  readKey: (source: Buffer, start: number, end: number): Key => copyBytes(source, start, end),
}

export type Root = RootDatabase
export type Bytes = Database<Uint8Array, Key>

export function openRoot(folder: string, { readOnly = false } = {}): Root {
  unpackAddonIn(folder)
  return library().open({
    path: folder,
    readOnly,
    // With overlapping syncs, killing one of two writing processes lost acknowledged writes of the other.
    overlappingSync: false,
    // One sparse mapping, so that growth never needs a second; costs address space only.
    mapSize: 64 * 2 ** 30,
    maxReaders: 512,
    // Unused bytes of a page may hold old data of this same file: nothing is gained by clearing them.
    noMemInit: true,
    maxDbs: 4,
  })
}

export function openBytes(root: Root, name: string): Bytes {
  return root.openDB({ name, encoding: 'binary', keyEncoder } as never)
}

/** What the work of a transaction returns to take back all that it wrote. */
export const abort = (): symbol => library().ABORT as unknown as symbol

/** Loaded with the first store, because its native addon may have to be unpacked into a folder. */
function library(): typeof import('./library.ts') {
  return require('./library.ts')
}
