/**
 * The store looked at as it lies: every value with its checksum, in one snapshot, without stopping at what is
 * damaged. For `postern verify`, which also has index entries written anew.
 */

import { open } from 'lmdb'
import { intactValue, withChecksum } from './checksum.ts'
import { type Bytes, keyEncoder } from './lmdb-runs.ts'
import { Run, writeRun } from './runs.ts'
import { type Entry, type Key, StoreError } from './store.ts'

export interface Inspector {
  /** A record, whole. Of one kind after the other, each in the order of its keys. */
  entry(entry: Entry): void
  /** What is kept under this key cannot be read; of a run, the last of its keys. */
  damaged(key: Key): void
}

/** `folder` is the store's. It may be served meanwhile. */
export async function inspect(folder: string, { entry, damaged }: Inspector): Promise<void> {
  const root = open({ path: folder, overlappingSync: false, maxDbs: 4 })
  try {
    const data: Bytes = root.openDB({ name: 'postern', encoding: 'binary', keyEncoder } as never)
    const runs: Bytes = root.openDB({ name: 'runs', encoding: 'binary', keyEncoder } as never)
    for (const { key, value } of data.getRange({})) {
      const intact = intactValue(value)
      if (intact === undefined) damaged(key)
      else entry({ key, value: intact })
    }
    for (const { key, value } of runs.getRange({})) {
      const intact = intactValue(value)
      if (intact === undefined) {
        damaged(key)
        continue
      }
      const run = new Run(intact)
      for (let at = 0; at < run.count; at += 1) entry({ key: run.key(at), value: run.value(at) })
    }
  } finally {
    await root.close()
  }
}

/**
 * Replaces all entries of a kind that is kept in runs by these, sorted, whether or not the old ones can be read.
 * One transaction. `more` writes beside them.
 */
export async function replaceKind(
  folder: string,
  letter: number,
  entries: Iterable<Entry>,
  more: readonly Entry[],
): Promise<void> {
  const root = open({ path: folder, overlappingSync: false, maxDbs: 4 })
  const runBytes = 4 * 1024 - 64
  try {
    const data: Bytes = root.openDB({ name: 'postern', encoding: 'binary', keyEncoder } as never)
    const runs: Bytes = root.openDB({ name: 'runs', encoding: 'binary', keyEncoder } as never)
    root.transactionSync(() => {
      for (const key of [...runs.getKeys({ start: Buffer.of(letter), end: Buffer.of(letter + 1) })]) runs.remove(key)
      let run: Entry[] = []
      let size = 0
      const put = () => {
        const last = run.at(-1)
        if (last !== undefined) runs.put(last.key, withChecksum(writeRun(run)))
        run = []
        size = 0
      }
      for (const entry of entries) {
        if (entry.key[0] !== letter) throw new StoreError('fatal', 'an entry of another kind')
        run.push(entry)
        size += entry.key.length + entry.value.length + 9
        if (size > runBytes - 200) put()
      }
      put()
      for (const { key, value } of more) data.put(key, withChecksum(value))
    })
  } finally {
    await root.close()
  }
}
