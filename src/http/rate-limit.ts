/** Token buckets by name: so many a second, and twenty seconds' worth at once. */

import { LRUCache } from 'lru-cache'
import { burstSeconds, rateLimitNamesMax } from '../limits.ts'

export interface RateLimit {
  /** Takes one. Gives 0, or the whole seconds until there is one again. */
  take(name: string): number
  /** The same without taking. */
  wait(name: string): number
}

export interface RateLimitOptions {
  /** 0: no limit. */
  readonly perSecond: number
  /** Milliseconds; never goes back. */
  readonly now: () => number
}

export function createRateLimit({ perSecond, now }: RateLimitOptions): RateLimit {
  const burst = perSecond * burstSeconds
  // A name that fell out is one that was not heard of for long, or one of very many: it begins anew.
  const buckets = new LRUCache<string, { left: number; at: number }>({ max: rateLimitNamesMax })

  function refill(name: string): { left: number; at: number } {
    const at = now()
    const bucket = buckets.get(name)
    if (bucket === undefined) return { left: burst, at }
    bucket.left = Math.min(burst, bucket.left + ((at - bucket.at) / 1000) * perSecond)
    bucket.at = at
    return bucket
  }
  const seconds = (left: number) => (left >= 1 ? 0 : Math.max(1, Math.ceil((1 - left) / perSecond)))

  return {
    take(name) {
      if (perSecond === 0) return 0
      const bucket = refill(name)
      const wait = seconds(bucket.left)
      if (wait === 0) bucket.left -= 1
      buckets.set(name, bucket)
      return wait
    },
    wait: (name) => (perSecond === 0 ? 0 : seconds(refill(name).left)),
  }
}
