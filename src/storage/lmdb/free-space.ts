/**
 * Room on the disk. LMDB's addon can take the process with it when the disk fills up in the middle of a commit, so
 * none is begun without room for it. What takes access away may use most of that room: a full disk must not keep a
 * stolen key alive.
 */

import { statfsSync } from 'node:fs'
import { freeBytesMin } from '../../limits.ts'
import { StoreError } from '../store.ts'

/** What anyone but the superuser may still write on the disk that a folder is on. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/**
 * Throws StoreError `unavailable` when writing this much would leave less than the floor. `look` gives what is free.
 */
export function requireFreeSpace(folder: string, bytes: number, floor = freeBytesMin, look = freeBytes): void {
  const free = look(folder)
  if (free - bytes >= floor) return
  const megabytes = (count: number) => Math.ceil(count / 2 ** 20)
  throw new StoreError(
    'unavailable',
    `the disk of ${folder} has ${megabytes(free)} MB left, and this write needs ${megabytes(bytes + floor)}: free some space`,
  )
}
