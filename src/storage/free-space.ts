/**
 * Room on the disk. LMDB's addon can take the process with it when the disk fills up in the middle of a commit, so
 * none is begun without room for it.
 */

import { statfsSync } from 'node:fs'
import { freeBytesMin } from '../limits.ts'
import { StoreError } from './store.ts'

/** What anyone but the superuser may still write on the disk that a folder is on. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** Throws StoreError `unavailable` when writing this much would leave less than the floor. */
export function expectRoom(folder: string, bytes: number): void {
  const free = freeBytes(folder)
  if (free - bytes >= freeBytesMin) return
  const megabytes = (count: number) => Math.ceil(count / 2 ** 20)
  throw new StoreError(
    'unavailable',
    `the disk of ${folder} has ${megabytes(free)} MB left, and this needs ${megabytes(bytes + freeBytesMin)}: make room`,
  )
}
