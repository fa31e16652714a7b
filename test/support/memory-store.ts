/**
 * A store in memory, for tests. It is run against the same contract as the engines of the program, and shows in about
 * 100 lines what the contract means. Nothing is durable.
 */

import { copyBytes, equalBytes } from '../../src/storage/bytes.ts'
import { concatenate } from '../../src/storage/concatenated.ts'
import { applyCounts } from '../../src/storage/counts.ts'
import {
  type Committed,
  checkKey,
  type Entry,
  type Key,
  type Range,
  type Store,
  StoreError,
  type Write,
} from '../../src/storage/store.ts'

/** `entries`: what it begins with, sorted by key. */
export function openMemoryStore(entries: readonly Entry[] = []): Store {
  let commits = 0
  let closed = false

  function find(key: Key): Uint8Array | undefined {
    if (closed) throw new StoreError('fatal', 'the store is closed')
    const { at, found } = position(entries, key)
    return found ? entries[at]?.value : undefined
  }

  function slice({ gte, lt, limit }: Range): { taken: Entry[]; more: boolean } {
    if (closed) throw new StoreError('fatal', 'the store is closed')
    const from = position(entries, gte).at
    const to = Math.max(from, position(entries, lt).at)
    const until = Math.min(to, from + limit)
    return { taken: entries.slice(from, until), more: until < to }
  }

  async function commit(write: Write): Promise<Committed> {
    if (closed) throw new StoreError('fatal', 'the store is closed')
    const deletes = [...(write.deletes ?? [])]
    const puts = [...(write.puts ?? [])]
    for (const key of deletes) checkKey(key)
    for (const { key } of puts) checkKey(key)
    const conflicts = (write.checks ?? [])
      .filter(({ key, value }) => !equalBytes(find(key), value))
      .map(({ key }) => key)
    const { entries: counts, full } = applyCounts(conflicts.length > 0 ? [] : (write.counts ?? []), find)
    for (const count of counts) {
      if (count.value.length === 0) deletes.push(count.key)
      else puts.push(count)
    }
    if (conflicts.length + full.length > 0) return { ok: false, conflicts, full }
    // Change a copy and assign it at once, so that a concurrent reader sees all of the write or nothing.
    const changed = [...entries]
    for (const key of deletes) {
      const { at, found } = position(changed, key)
      if (found) changed.splice(at, 1)
    }
    for (const { key, value } of puts) {
      const { at, found } = position(changed, key)
      changed.splice(at, found ? 1 : 0, { key: copyBytes(key), value: copyBytes(value) })
    }
    entries = changed
    commits += 1
    return { ok: true }
  }

  const get = (key: Key) => copyOf(find(key))
  const concatValues = (range: Range) => {
    const { taken, more } = slice(range)
    return concatenate(
      taken.map(({ value }) => value),
      more ? taken.at(-1)?.key : undefined,
    )
  }

  return {
    get: async (key) => get(key),
    getMany: async (keys) => keys.map(get),
    async range(range) {
      const { taken, more } = slice(range)
      return { entries: taken.map(({ key, value }) => ({ key: copyBytes(key), value: copyBytes(value) })), more }
    },
    async keys(range) {
      const { taken, more } = slice(range)
      return { keys: taken.map(({ key }) => copyBytes(key)), more }
    },
    concatValues: async (range, beside) => ({
      ...concatValues(range),
      beside: beside === undefined ? undefined : get(beside),
    }),
    local: {
      get,
      concatValues(range, bytesMax, use) {
        const values = concatValues(range)
        return values.wrap('', '').length > bytesMax ? undefined : use(values)
      },
      commitCount: () => commits,
    },
    commit,
    load: commit,
    health: async () => ({ bytes: 0, durability: 'local', clockOffsetMs: 0 }),
    async close() {
      closed = true
      entries = []
    },
  }
}

/** Index of the key, or the index at which it would be inserted. */
function position(entries: readonly Entry[], key: Key): { at: number; found: boolean } {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const order = Buffer.compare((entries[middle] as Entry).key, key)
    if (order === 0) return { at: middle, found: true }
    if (order < 0) low = middle + 1
    else high = middle
  }
  return { at: low, found: false }
}

function copyOf(bytes: Uint8Array | undefined): Uint8Array | undefined {
  return bytes === undefined ? undefined : copyBytes(bytes)
}
