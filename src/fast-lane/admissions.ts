/**
 * Admissions: decisions by caller and URL. A `Caller` object belongs to one version of the directory, so an admission
 * is valid as long as that object is in use. A value that depends on more than the directory must carry its own
 * version.
 */

import { LRUCache } from 'lru-cache'
import type { Caller } from '../auth/authenticate.ts'

/** Admissions (caller and URL) of one kind. Past it: decided again. */
const admissionsKeptMax = 4000
/** Characters of a URL with an admission; longer ones rarely repeat. Past it: decided again. */
export const admissionUrlCharsMax = 512

/** In bytes: the most of all together, and of each. A larger one is not remembered. */
interface Sizes<T> {
  readonly maxSize: number
  readonly maxEntrySize?: number
  readonly sizeOf: (admission: T, caller: Caller) => number
}

/** `sizes` bounds their memory, which `admissionsKeptMax` alone would not. */
export function createAdmissions<T extends object>({ sizeOf, ...sizes }: Sizes<T>) {
  const kept = new LRUCache<string, T>({ ...sizes, max: admissionsKeptMax })
  /** A number for each Caller object. Keys are texts, so the cache does not keep callers in memory. */
  const numbers = new WeakMap<Caller, number>()
  let last = 0
  return {
    find(caller: Caller, url: string): T | undefined {
      const number = numbers.get(caller)
      return number === undefined ? undefined : kept.get(`${number} ${url}`)
    },
    remember(caller: Caller, url: string, admission: T): void {
      // The number of entries is bounded, so their length must be too; long URLs are rare.
      if (url.length > admissionUrlCharsMax) return
      const number = numbers.get(caller) ?? last + 1
      last = Math.max(last, number)
      numbers.set(caller, number)
      kept.set(`${number} ${url}`, admission, { size: sizeOf(admission, caller) })
    },
  }
}
