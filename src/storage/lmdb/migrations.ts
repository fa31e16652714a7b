/**
 * The version of what is written where (`README.md`). A store of an older version is upgraded when it is opened by
 * whoever may do so, in one transaction; one of a newer version is left alone.
 */

import { connections, prefixRange, privates } from '../keys.ts'
import { asBuffer, StoreError } from '../store.ts'
import { createUsageCounter } from '../usage.ts'
import { appendChecksum, noKey, tryVerifyChecksum } from './checksum.ts'
import { type Bytes, openBytes, type Root } from './root.ts'
import { Segment } from './segments.ts'

const oldest = 1
const version = 4
const formatKey = Buffer.from('v')

/** What makes the next version of the one it stands at. Each sees the bytes as they lie there. */
const upgrades: Readonly<Record<number, (data: Bytes, segments: Bytes) => void>> = {
  1: addChecksums,
  2: coverKeys,
  3: countUsage,
}

/**
 * Asked before a store of an older version is upgraded: calls `upgrade`, which tells whether there was something left
 * to do, or throws. A program of the older version that has the store open would understand nothing in it any more.
 */
export type Upgrading = (from: number, to: number, upgrade: () => boolean) => void

/** For whoever only looks. */
export const neverUpgrading: Upgrading = (from, to) => {
  throw new StoreError('fatal', `it has layout version ${from}; this postern writes version ${to}`)
}

/**
 * Where the records are: entries of LMDB's own, and segments. Throws StoreError `fatal` for a store of a version that
 * this program does not know, and what `upgrading` throws.
 */
export function openRecords(
  root: Root,
  upgrading = neverUpgrading,
): { readonly data: Bytes; readonly segments: Bytes } {
  const data = openBytes(root, 'postern')
  const segments = openBytes(root, 'runs')
  prepareFormat(root, data, segments, upgrading)
  return { data, segments }
}

function prepareFormat(root: Root, data: Bytes, segments: Bytes, upgrading: Upgrading): void {
  // A database of its own: the version is about the others, and no record among theirs. The first version had none,
  // so it is not opened, and with that made, before we know.
  const format = () => openBytes(root, 'format')
  const found = () => data.get(formatKey) ?? format().get(formatKey)
  const note = () => format().put(formatKey, Buffer.from(`postern ${version}`))
  const stored = found()
  if (stored === undefined) {
    root.transactionSync(() => void note())
    return
  }
  const from = versionIn(stored)
  if (from === version) return
  upgrading(from, version, () =>
    root.transactionSync(() => {
      // Looked at again: another process may have been faster.
      const now = versionIn(found() ?? stored)
      for (let at = now; at < version; at += 1) upgrades[at]?.(data, segments)
      if (now < version) note()
      return now < version
    }),
  )
}

function versionIn(stored: Uint8Array): number {
  const text = asBuffer(stored).toString('latin1', 0, 20)
  const number = Number(/^postern (\d+)$/.exec(text)?.[1])
  if (number >= oldest && number <= version) return number
  throw new StoreError('fatal', `it was written by a newer version of postern (${text}): use that version`)
}

/** From 1: the version stood among the records, values had no checksum, and segments were kept under
 * their first key. */
function addChecksums(data: Bytes, segments: Bytes): void {
  data.remove(formatKey)
  for (const key of [...data.getKeys()]) data.put(key, appendChecksum(noKey, data.get(key) ?? nothing))
  for (const key of [...segments.getKeys()]) {
    const value = asBuffer(segments.get(key) ?? new Uint8Array(4))
    const segment = new Segment(value)
    segments.remove(key)
    if (segment.count > 0) segments.put(segment.key(segment.count - 1), appendChecksum(noKey, value))
  }
}

/** From 2: the checksum of a record was of its value alone. What was damaged before stays so. */
function coverKeys(data: Bytes): void {
  for (const key of [...data.getKeys()]) {
    const value = tryVerifyChecksum(noKey, data.get(key) ?? nothing)
    if (value !== undefined) data.put(key, appendChecksum(key, value))
  }
}

/** From 3: nobody counted what a namespace holds. */
function countUsage(data: Bytes, segments: Bytes): void {
  const usages = createUsageCounter()
  for (const { value } of segments.getRange({ start: connections, end: prefixRange(connections).lt })) {
    const segment = new Segment(tryVerifyChecksum(noKey, value) ?? Buffer.alloc(4))
    for (let at = 0; at < segment.count; at += 1) usages.add({ key: segment.key(at), value: segment.value(at) })
  }
  for (const { key, value } of data.getRange({ start: privates, end: prefixRange(privates).lt })) {
    usages.add({ key, value: tryVerifyChecksum(key, value) ?? nothing })
  }
  for (const { key, value } of usages.entries()) data.put(key, appendChecksum(key, value))
}

const nothing = new Uint8Array(0)
