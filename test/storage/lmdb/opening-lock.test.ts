/** Commits and openings of a store keep out of each other's way (LMDB ITS#9496). */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Commits,
  openCommits,
  openingLockFile,
  whileNobodyCommits,
  whileNobodyOpens,
} from '../../../src/storage/lmdb/opening-lock.ts'

let folder = ''
let commits: Commits
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-test-opening-'))
  commits = openCommits(folder)
})
afterEach(() => {
  commits.close()
  rmSync(folder, { recursive: true })
})
const busy = expect.objectContaining({
  kind: 'unavailable',
  message: expect.stringContaining('another process has been'),
})
/** What opening the store gives, or throws at once. */
const opening = () => whileNobodyCommits(folder, () => 'opened', 0)

test('nobody opens a store while a commit is under way', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const committed = commits.run(() => promise)
  expect(opening).toThrow(busy)
  resolve('committed')
  expect(await committed).toBe('committed')
  expect(opening()).toBe('opened')
  expect(() => whileNobodyOpens(folder, opening)).toThrow(busy)
  await expect(commits.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(opening()).toBe('opened')
})

test('a file that is no lock is said to be none', () => {
  commits.close()
  writeFileSync(join(folder, openingLockFile), 'not a database, but a text of some length '.repeat(100))
  expect(opening).toThrow(/opening\.lock is not a lock \(.*\): delete it; it will be created again$/)
  rmSync(join(folder, openingLockFile))
  commits = openCommits(folder)
  expect(opening()).toBe('opened')
})

test('no commit begins while somebody opens the store, and all do afterwards', async () => {
  const begun: number[] = []
  let done: Promise<unknown> = Promise.resolve()
  whileNobodyCommits(folder, () => {
    done = Promise.all([1, 2, 3].map((one) => commits.run(async () => begun.push(one))))
    expect(begun).toEqual([])
    expect(() => whileNobodyOpens(folder, () => 'written', 0)).toThrow(busy)
  })
  expect(begun).toEqual([])
  await done
  expect(begun.sort()).toEqual([1, 2, 3])
})

test('commits without a gap let in another process that opens the store', async () => {
  let isOver = false
  const commit = async () => {
    // Another begins before the others have ended.
    while (!isOver) await commits.run(() => new Promise((resolve) => setImmediate(resolve)))
  }
  const committing = Promise.all([commit(), commit(), commit()])
  const other = Bun.spawn([process.execPath, join(import.meta.dir, 'other-process.ts'), folder], { stdin: 'ignore' })
  expect(await other.exited).toBe(0)
  isOver = true
  await committing
})
