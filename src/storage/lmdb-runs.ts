/** Reads runs (`runs.ts`) where LMDB has them, without a copy of what is not asked for. */

import type { Database, RootDatabase, Transaction } from 'lmdb'
import { Run } from './runs.ts'
import { comma, type Joined, type Key, type Range } from './store.ts'

/** Keys are our own bytes. lmdb-js compares past the end of a key, so eight zero bytes follow each. */
export const keyEncoder = {
  writeKey(key: Key, target: Buffer, start: number): number {
    target.set(key, start)
    const end = start + key.length
    target.fill(0, end, end + 8)
    return end
  },
  readKey(source: Buffer, start: number, end: number): Key {
    return Uint8Array.prototype.slice.call(source, start, end)
  },
}

export type Bytes = Database<Uint8Array, Key>

/** Takes an entry of a range; its bytes are the taker's to keep. The value is empty where only keys are asked for. */
export type Take = (key: Key, value: Uint8Array) => void

/** Without a transaction it reads in the one that writes. */
export interface RunReader {
  get(key: Key, transaction: Transaction | undefined): Uint8Array | undefined
  /** Gives at most `limit` entries to `take`; returns whether the range holds more. */
  walk(range: Range, transaction: Transaction, kind: 'entries' | 'keys', take: Take): boolean
  /** The values with commas between them, in a buffer that the next join overwrites. */
  join(range: Range, transaction: Transaction): Joined
}

export function openRunReader(root: RootDatabase): RunReader {
  let current: Run | undefined
  // lmdb-js decodes values through its `encoder`. The bytes it hands over are its own, valid until the next step.
  const encoder = {
    encode: (value: Uint8Array) => value,
    decode(bytes: Buffer): true {
      current = new Run(bytes)
      return true
    },
  }
  const runs: Bytes = root.openDB({ name: 'runs', encoder, keyEncoder } as never)
  Object.assign(runs, { decoderCopies: true })
  let page = Buffer.allocUnsafe(128 * 1024)

  /** Shows runs one after the other until `visit` says stop. */
  function each(options: object, visit: (run: Run) => 'go on' | 'stop'): void {
    const steps = runs.getRange(options as never)[Symbol.iterator]()
    while (steps.next().done !== true) {
      if (current !== undefined && visit(current) === 'stop') {
        steps.return?.()
        return
      }
    }
  }

  /** The runs that may hold keys of the range: the one that begins before it, too. */
  function eachIn({ gte, lt }: Range, transaction: Transaction, visit: (run: Run) => 'go on' | 'stop'): void {
    let stopped = false
    each({ start: gte, reverse: true, limit: 1, transaction }, (run) => {
      stopped = visit(run) === 'stop'
      return 'stop'
    })
    // A short look often ends in that one run.
    if (!stopped) each({ start: Buffer.concat([gte, Buffer.of(0)]), end: lt, transaction }, visit)
  }

  return {
    get(key, transaction) {
      let value: Uint8Array | undefined
      each({ start: key, reverse: true, limit: 1, ...(transaction && { transaction }) }, (run) => {
        const at = run.seek(key)
        if (at < run.count && run.compare(at, key) === 0) value = run.value(at)
        return 'stop'
      })
      return value
    },

    walk(range, transaction, kind, take) {
      const { gte, lt, limit } = range
      let taken = 0
      let more = false
      eachIn(range, transaction, (run) => {
        for (let at = run.seek(gte); at < run.count; at += 1) {
          if (run.compare(at, lt) >= 0) return 'stop'
          more = taken === limit
          if (more) return 'stop'
          taken += 1
          take(run.key(at), kind === 'keys' ? nothing : run.value(at))
        }
        return 'go on'
      })
      return more
    },

    join(range, transaction) {
      const { gte, lt, limit } = range
      let filled = 0
      let count = 0
      let moreAfter: Key | undefined
      let more = false
      eachIn(range, transaction, (run) => {
        const start = run.seek(gte)
        const end = run.compare(run.count - 1, lt) < 0 ? run.count : run.seek(lt)
        const taken = Math.min(end - start, limit - count)
        if (taken > 0) {
          const length = run.valuesLength(start, start + taken)
          if (filled + length + 1 > page.length) {
            const larger = Buffer.allocUnsafe((filled + length + 1) * 2)
            page.copy(larger, 0, 0, filled)
            page = larger
          }
          if (count > 0) {
            page[filled] = comma
            filled += 1
          }
          run.copyValues(start, start + taken, page, filled)
          filled += length
          count += taken
          // Only the end of a full page can be where a next one begins; its bytes are gone with the next run.
          if (count === limit) moreAfter = run.key(start + taken - 1)
        }
        more = end - start > taken
        return more || end < run.count ? 'stop' : 'go on'
      })
      return { bytes: page.subarray(0, filled), count, moreAfter: more ? moreAfter : undefined }
    },
  }
}

const nothing = new Uint8Array(0)
