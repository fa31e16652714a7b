/** Opens LMDB. All callers use the same settings, because several processes share the file. */

import type { Database, RootDatabase } from 'lmdb'
import { copyBytes } from '../bytes.ts'
import type { Key } from '../store.ts'
import { unpackAddonIn } from './addon.ts'
import { withLock } from './opening-lock.ts'

/** Keys are raw bytes. lmdb-js reads beyond the end of a key when it compares, so eight zero bytes follow each. */
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
/** A named database with raw keys and values, not checked against checksums. */
export type Bytes = Database<Uint8Array, Key>

/** Opens the environment in `folder`. The caller must close it. */
export function openRoot(folder: string, { readOnly = false } = {}): Root {
  unpackAddonIn(folder)
  const { open } = library()
  return withLock(folder, 'opening', () =>
    open({
      path: folder,
      readOnly,
      // With overlapping syncs, killing one of two writing processes lost acknowledged commits of the other.
      overlappingSync: false,
      // One sparse mapping that never has to grow. It costs address space only.
      mapSize: 64 * 2 ** 30,
      maxReaders: 512,
      // Do not clear unused bytes of a page: they can only hold older data of this same file.
      noMemInit: true,
      maxDbs: 4,
      // Free pages that a transaction looks through, and that stay in memory for the next one. With the library's
      // 50,000 and 75,000, one value of a megabyte in a file with many holes held the event loop for 0.4 s, and each
      // commit after it, until a restart. Files grow no more than before.
      ...({ maxFreeSpaceToLoad: 1000, maxFreeSpaceToRetain: 2000 } as object),
    }),
  )
}

/** Opens a named database with raw keys and values, creating it if it is missing. */
export function openBytes(root: Root, name: string): Bytes {
  return root.openDB({ name, encoding: 'binary', keyEncoder } as never)
}

/** The value that a transaction's function returns to roll back all its writes. */
export const abort = (): symbol => library().ABORT as unknown as symbol

/** Imported lazily: the addon may first have to be unpacked into the folder of the store. */
function library(): typeof import('./library.ts') {
  return require('./library.ts')
}
