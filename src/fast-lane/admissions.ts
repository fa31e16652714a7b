/**
 * What was decided for a caller and a URL. A `Caller` stands for one reading of the registry, so what it was admitted
 * to holds as long as it does; what depends on more says so itself.
 */

import { LRUCache } from 'lru-cache'
import type { Caller } from '../auth/authenticate.ts'
import { admissionsKeptMax, admissionUrlCharsMax } from '../limits.ts'

export interface Admissions<T extends object> {
  find(caller: Caller, url: string): T | undefined
  remember(caller: Caller, url: string, admission: T): void
}

export interface AdmissionSizes<T> {
  readonly bytesMax: number
  readonly sizeOf: (admission: T) => number
}

/** Without `sizes`, admissions are small. */
export function createAdmissions<T extends object>(sizes?: AdmissionSizes<T>): Admissions<T> {
  const kept = new LRUCache<string, T>({
    max: admissionsKeptMax,
    ...(sizes && { maxSize: sizes.bytesMax, sizeCalculation: sizes.sizeOf }),
  })
  const numbers = new WeakMap<Caller, number>()
  let last = 0
  return {
    find(caller, url) {
      const number = numbers.get(caller)
      return number === undefined ? undefined : kept.get(`${number} ${url}`)
    },
    remember(caller, url, admission) {
      // Long URLs are rare and would fill the memory.
      if (url.length > admissionUrlCharsMax) return
      let number = numbers.get(caller)
      if (number === undefined) {
        last += 1
        number = last
        numbers.set(caller, number)
      }
      kept.set(`${number} ${url}`, admission)
    },
  }
}
