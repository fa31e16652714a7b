/** The arithmetic of counts (`Count` in store.ts), for every engine. */

import { textOf } from './bytes.ts'
import { type Count, checkKey, type Entry, type Key } from './store.ts'

/** The stored form of a count: decimals separated by spaces. */
export function countBytes(numbers: readonly number[]): Uint8Array {
  return Buffer.from(numbers.join(' '))
}

/**
 * Applies counts to the values that `find` returns. `entries`: the new values, empty where the key is to be deleted.
 * `full`: keys of counts that would exceed their bound.
 */
export function applyCounts(
  counts: readonly Count[],
  find: (key: Key) => Uint8Array | undefined,
): { readonly entries: readonly Entry[]; readonly full: readonly Key[] } {
  const entries: Entry[] = []
  const full: Key[] = []
  for (const count of counts) {
    checkKey(count.key)
    const value = applyCount(find(count.key), count)
    if (value === undefined) full.push(count.key)
    else entries.push({ key: count.key, value })
  }
  return { entries, full }
}

/** The new value, empty if all numbers are 0; undefined if a number that is raised would exceed its bound. */
function applyCount(stored: Uint8Array | undefined, { add, most }: Count): Uint8Array | undefined {
  const before = stored === undefined ? [] : textOf(stored).split(' ').map(Number)
  const after = add.map((number, index) => (before[index] ?? 0) + number)
  const isFull = add.some((number, index) => number > 0 && (after[index] as number) > (most?.[index] ?? Infinity))
  if (isFull) return undefined
  return after.every((number) => number === 0) ? new Uint8Array(0) : countBytes(after)
}
