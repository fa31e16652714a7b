/**
 * Free disk space. lmdb-js can crash on a full disk, so no commit begins without enough. Revocations and deletions have
 * lower floors: a full disk must not keep a stolen key valid. So has the line of a call that ends.
 */

import { statfsSync } from 'node:fs'
import { freeBytesMin } from '../limits.ts'
import { StoreError } from './store.ts'

export const folderMovedAway =
  'the data folder was moved away while postern was running: move it back, and restart postern'

/** Bytes that an unprivileged user may still write to the file system of `folder`. Throws StoreError `unavailable`. */
export function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const problem =
      code === 'ENOENT' ? folderMovedAway : `cannot read the free space of the disk of ${folder}: ${message}`
    throw new StoreError('unavailable', problem, { cause })
  }
}

/** The bytes that remain free after writing `bytes`. Throws StoreError `unavailable` if they are less than `floor`. */
export function requireFreeSpace(folder: string, bytes: number, floor = freeBytesMin, look = freeBytes): number {
  const free = look(folder)
  if (free - bytes >= floor) return free - bytes
  const megabytes = (count: number) => Math.ceil(count / 2 ** 20)
  throw new StoreError(
    'unavailable',
    `the disk of ${folder} has ${megabytes(free)} MB left, and this write needs ${megabytes(bytes + floor)}: free some space`,
  )
}
