/**
 * The version of what is written where (`README.md`). A store of an older version is upgraded when it is opened,
 * in one transaction; one of a newer version is left alone.
 */

import { intactValue, ofRun, withChecksum } from './checksum.ts'
import { connections, privates, under } from './keys.ts'
import { type Bytes, openBytes, type Root } from './lmdb-root.ts'
import { Run } from './runs.ts'
import { asBuffer, StoreError, sameBytes } from './store.ts'
import { createUsages } from './usage.ts'

const oldest = 1
const version = 4
const formatKey = Buffer.from('v')

/** What makes the next version of the one it stands at. Each sees the bytes as they lie there. */
const upgrades: Readonly<Record<number, (data: Bytes, runs: Bytes) => void>> = {
  1: addChecksums,
  2: coverKeys,
  3: countUsage,
}

/**
 * Where the records are: entries of LMDB's own, and runs. Throws StoreError `fatal` for a store of a version that
 * this program does not know.
 */
export function openRecords(root: Root): { readonly data: Bytes; readonly runs: Bytes } {
  const data = openBytes(root, 'postern')
  const runs = openBytes(root, 'runs')
  prepareFormat(root, data, runs)
  return { data, runs }
}

function prepareFormat(root: Root, data: Bytes, runs: Bytes): void {
  // A database of its own: the version is about the others, and no record among theirs.
  const format = openBytes(root, 'format')
  const current = Buffer.from(`postern ${version}`)
  const found = () => format.get(formatKey) ?? data.get(formatKey)
  if (sameBytes(found(), current)) return
  root.transactionSync(() => {
    // Looked at again: another process may have been faster.
    const stored = found()
    const text = stored === undefined ? `postern ${version}` : asBuffer(stored).toString('latin1', 0, 20)
    const from = Number(/^postern (\d+)$/.exec(text)?.[1])
    if (!(from >= oldest && from <= version)) {
      throw new StoreError('fatal', `it was written by a newer version of postern (${text}): use that version`)
    }
    for (let at = from; at < version; at += 1) upgrades[at]?.(data, runs)
    format.put(formatKey, current)
  })
}

/** From 1: the version stood among the records, values had no checksum, and runs were kept under
 * their first key. */
function addChecksums(data: Bytes, runs: Bytes): void {
  data.remove(formatKey)
  for (const key of [...data.getKeys()]) data.put(key, withChecksum(ofRun, data.get(key) ?? nothing))
  for (const key of [...runs.getKeys()]) {
    const value = asBuffer(runs.get(key) ?? new Uint8Array(4))
    const run = new Run(value)
    runs.remove(key)
    if (run.count > 0) runs.put(run.key(run.count - 1), withChecksum(ofRun, value))
  }
}

/** From 2: the checksum of a record was of its value alone. What was damaged before stays so. */
function coverKeys(data: Bytes): void {
  for (const key of [...data.getKeys()]) {
    const value = intactValue(ofRun, data.get(key) ?? nothing)
    if (value !== undefined) data.put(key, withChecksum(key, value))
  }
}

/** From 3: nobody counted what a namespace holds. */
function countUsage(data: Bytes, runs: Bytes): void {
  const usages = createUsages()
  for (const { value } of runs.getRange({ start: connections, end: under(connections).lt })) {
    const run = new Run(intactValue(ofRun, value) ?? Buffer.alloc(4))
    for (let at = 0; at < run.count; at += 1) usages.add({ key: run.key(at), value: run.value(at) })
  }
  for (const { key, value } of data.getRange({ start: privates, end: under(privates).lt })) {
    usages.add({ key, value: intactValue(key, value) ?? nothing })
  }
  for (const { key, value } of usages.entries()) data.put(key, withChecksum(key, value))
}

const nothing = new Uint8Array(0)
