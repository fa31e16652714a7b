/** Commits and openings of a store keep out of each other's way (LMDB ITS#9496). */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openingLockFile, openSharedLock, withLock } from '../../../src/storage/lmdb/opening-lock.ts'

let folder = ''
let lock: ReturnType<typeof openSharedLock>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-test-opening-'))
  lock = openSharedLock(folder)
})
afterEach(() => {
  lock.close()
  rmSync(folder, { recursive: true })
})
const busy = expect.objectContaining({
  kind: 'unavailable',
  message: expect.stringContaining('another process has been'),
})
/** What opening the store gives, or throws at once. */
const opening = () => withLock(folder, 'opening', () => 'opened', 0)

test('nobody opens a store while a commit is under way', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const committed = lock.run(() => promise)
  expect(opening).toThrow(busy)
  resolve('committed')
  expect(await committed).toBe('committed')
  expect(opening()).toBe('opened')
  expect(() => withLock(folder, 'write', opening)).toThrow(busy)
  await expect(lock.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(opening()).toBe('opened')
})

test('a file that is no lock is said to be none', () => {
  lock.close()
  writeFileSync(join(folder, openingLockFile), 'not a database, but a text of some length '.repeat(100))
  expect(opening).toThrow(
    /opening\.lock is not a lock \(.*\): stop every postern on this data folder, delete the file, and start/,
  )
  rmSync(join(folder, openingLockFile))
  lock = openSharedLock(folder)
  expect(opening()).toBe('opened')
})

test('a lock that cannot be opened is not said to be busy', () => {
  const missing = join(folder, 'missing')
  expect(() => withLock(missing, 'write', () => 'written', 0)).toThrow(
    expect.objectContaining({ kind: 'fatal', message: expect.stringMatching(/opening\.lock cannot be locked: /) }),
  )
})

test('no commit begins while somebody opens the store, and all do afterwards', async () => {
  const begun: number[] = []
  let done: Promise<unknown> = Promise.resolve()
  withLock(folder, 'opening', () => {
    done = Promise.all([1, 2, 3].map((one) => lock.run(async () => begun.push(one))))
    expect(begun).toEqual([])
    expect(() => withLock(folder, 'write', () => 'written', 0)).toThrow(busy)
  })
  expect(begun).toEqual([])
  await done
  expect(begun.sort()).toEqual([1, 2, 3])
})

test('commits without a gap let in another process that opens the store', async () => {
  let isOver = false
  const commit = async () => {
    // Another begins before the others have ended.
    while (!isOver) await lock.run(() => new Promise((resolve) => setImmediate(resolve)))
  }
  const committing = Promise.all([commit(), commit(), commit()])
  const other = Bun.spawn([process.execPath, join(import.meta.dir, 'other-process.ts'), folder], { stdin: 'ignore' })
  expect(await other.exited).toBe(0)
  isOver = true
  await committing
})
