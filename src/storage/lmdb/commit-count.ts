/**
 * The number of LMDB's last transaction, read where every process that has the store open shares it: in the
 * mapped lock file. LMDB writes it as the last step of a commit, before the commit is acknowledged, and a
 * snapshot is of the transaction that stands there when it begins. A read of it costs a tenth of a
 * microsecond; one of a key costs twenty times that.
 */

import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const magic = 0xbeefc0de
const magicAt = 0
const transactionAt = 8
const headBytes = 16

/**
 * To be called before LMDB opens the folder in this process, never while it is open: closing any descriptor
 * of the lock file gives up every lock that this process has on it. The count is undefined where the lock file
 * is not what we know.
 */
export function openCommitCount(folder: string): () => number | undefined {
  const path = join(folder, 'lock.mdb')
  // A file that is not there yet is made, with something to map; LMDB fills in one that nobody else has open.
  const descriptor = openSync(path, 'a+')
  try {
    if (Bun.file(path).size < headBytes) writeSync(descriptor, new Uint8Array(headBytes))
  } finally {
    closeSync(descriptor)
  }
  const file = Bun.mmap(path, { shared: true })
  // In the machine's own byte order, as LMDB writes.
  const words = new Uint32Array(file.buffer, file.byteOffset, headBytes / 4)
  return () => {
    if (words[magicAt / 4] !== magic) return undefined
    return (words[transactionAt / 4 + 1] as number) * 2 ** 32 + (words[transactionAt / 4] as number)
  }
}
