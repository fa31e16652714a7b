/** Counts values of JSON, no further than it matters: each key of a list takes a third of a microsecond to make. */

/** Whether a value has no more than so many values in it, itself included. */
export function hasAtMostValues(value: unknown, most: number): boolean {
  const waiting = [value]
  for (let left = most; waiting.length > 0; left -= 1) {
    if (left <= 0) return false
    const one = waiting.pop()
    if (typeof one !== 'object' || one === null) continue
    const parts: readonly unknown[] = Array.isArray(one) ? one : Object.values(one)
    if (parts.length >= left) return false
    waiting.push(...parts)
  }
  return true
}
