/**
 * The layout version and its migrations (`storage/README.md`). A store of an older version is upgraded in one
 * transaction when it is opened, if the caller allows it. A store of a newer version is refused unchanged.
 */

import { asBuffer } from '../bytes.ts'
import { connections, listings, prefixRange, privates, servers, startedKey } from '../keys.ts'
import { entriesMissingOf, indexedKinds } from '../registry-records.ts'
import { type Entry, type Key, StoreError } from '../store.ts'
import { createUsages } from '../usage.ts'
import { appendChecksum, noKey, tryVerifyChecksum } from './checksum.ts'
import { type Bytes, openBytes, type Root } from './root.ts'
import { Segment } from './segments.ts'

const oldest = 1
const version = 5
const formatKey = Buffer.from('v')

/** Migrations by the version that they upgrade from. They see stored bytes, checksums included. */
const upgrades: Readonly<Record<number, (data: Bytes, segments: Bytes) => void>> = {
  1: addChecksums,
  2: coverKeys,
  4: indexRegistry,
}

/**
 * Called before an upgrade. It must either call `upgrade`, which returns false if another process has already done it,
 * or throw. It exists because an older program that has the store open can no longer read it after the upgrade.
 */
export type Upgrading = (from: number, to: number, upgrade: () => boolean) => void

/** Refuses the upgrade: for read-only commands. */
export const neverUpgrading: Upgrading = (from, to) => {
  throw new StoreError('fatal', `it has layout version ${from}; this postern writes version ${to}`)
}

/**
 * Opens the two databases: `data` for single records, `segments` for packed kinds. Throws StoreError `fatal` for an
 * unknown layout version, and whatever `upgrading` throws.
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
  // The version has its own database, so that it is not one of the records. Version 1 kept it among the records and had
  // no such database; opening would create it, so look among the records first.
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
      // Check again: another process may have upgraded it since.
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

/**
 * From version 1: the version was one of the records, values had no checksum, and a segment was stored under its first
 * key.
 */
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

/** From version 2: checksums did not cover the key. Values that are damaged already are left as they are. */
function coverKeys(data: Bytes): void {
  for (const key of [...data.getKeys()]) {
    const value = tryVerifyChecksum(noKey, data.get(key) ?? nothing)
    if (value !== undefined) data.put(key, appendChecksum(key, value))
  }
}

/** There were no usages, or none of servers. */
function countUsage(data: Bytes, segments: Bytes): void {
  const usages = createUsages()
  for (const { value } of segments.getRange({ start: connections, end: prefixRange(connections).lt })) {
    const segment = new Segment(tryVerifyChecksum(noKey, value) ?? Buffer.alloc(4))
    for (let at = 0; at < segment.count; at += 1) usages.add({ key: segment.key(at), value: segment.value(at) })
  }
  for (const start of [privates, servers, listings])
    for (const { key, value } of data.getRange({ start, end: prefixRange(start).lt }))
      usages.add({ key, value: tryVerifyChecksum(key, value) ?? nothing })
  for (const { key, value } of usages.entries()) data.put(key, appendChecksum(key, value))
}

/** Before version 5, the registry had no indexes, and servers no listings. */
function indexRegistry(data: Bytes, segments: Bytes): void {
  const read = (key: Key) => tryVerifyChecksum(key, data.get(key) ?? nothing)
  const started = read(startedKey)
  const put = ({ key, value }: Entry) => data.put(key, appendChecksum(key, value))
  for (const start of indexedKinds) {
    for (const { key, value: stored } of [...data.getRange({ start, end: prefixRange(start).lt })]) {
      const value = tryVerifyChecksum(key, stored)
      // What is damaged stays so, and `verify` tells.
      if (value !== undefined) for (const entry of entriesMissingOf({ key, value }, started)) put(entry)
    }
  }
  countUsage(data, segments)
}

const nothing = new Uint8Array(0)
