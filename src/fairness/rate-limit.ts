/** Rate limits as token buckets by name: `perSecond` on average, and bursts of `burstSeconds` times as many. */

import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { rateLimited } from '../errors.ts'
import { burstSeconds } from '../limits.ts'
import { isOrganizationUser } from '../model/names.ts'
import type { Holder } from './owner.ts'

/** Names that a rate limit keeps, of 200 bytes each. Past it: the least recently used one begins again. */
const rateLimitNamesMax = 20_000

export type RateLimit = ReturnType<typeof createRateLimit>

export interface RateLimitOptions {
  /** 0: no limit. */
  readonly perSecond: number
  /** At once, after a pause; `burstSeconds` times `perSecond` if left out. */
  readonly burst?: number
  readonly clock: Clock
}

export function createRateLimit({ perSecond, burst = perSecond * burstSeconds, clock }: RateLimitOptions) {
  // An evicted name starts again with a full bucket. Only the names unused longest are evicted. Not `max`: it takes the
  // room for all names at once, for every rate limit, most of which nobody comes near.
  const buckets = new LRUCache<string, { left: number; at: number }>({
    maxSize: rateLimitNamesMax,
    sizeCalculation: () => 1,
  })

  function refill(name: string): { left: number; at: number } {
    const at = clock.monotonic()
    const bucket = buckets.get(name)
    if (bucket === undefined) return { left: burst, at }
    bucket.left = Math.min(burst, bucket.left + ((at - bucket.at) / 1000) * perSecond)
    bucket.at = at
    return bucket
  }
  const seconds = (left: number, kept = 0) =>
    left >= kept + 1 ? 0 : Math.max(1, Math.ceil((kept + 1 - left) / perSecond))

  return {
    /** Takes one and returns 0, or none and returns seconds to wait. `kept`: the part of a bucket left to others. */
    take(name: string, kept = 0): number {
      if (perSecond === 0) return 0
      const bucket = refill(name)
      const wait = seconds(bucket.left, Math.floor(burst * kept))
      if (wait === 0) bucket.left -= 1
      buckets.set(name, bucket)
      return wait
    },
    /** Returns the same as `take` would, without taking. */
    wait: (name: string) => (perSecond === 0 ? 0 : seconds(refill(name).left)),
  }
}

/** Throws `rate_limited` with this text if there are seconds to wait. */
export function requireRate(wait: number, refusal: string): void {
  if (wait > 0) throw rateLimited(refusal, wait)
}

/** The name of a rate that flags give to an API key: an organization's admins make keys, so its keys share one. */
export function rateNameOf({ keyId, userId }: Holder): string {
  return userId !== undefined && isOrganizationUser(userId) ? userId : keyId
}

export type HolderRateLimit = ReturnType<typeof createHolderRateLimit>

/**
 * The rate of an API key with all its tokens; of an organization, of all its keys. A family of tokens has half of it,
 * and all families leave a quarter of what has gathered to the key itself: tokens that were given away, and may do
 * nothing, do not keep it from working, and so from revoking them.
 */
export function createHolderRateLimit(options: Omit<RateLimitOptions, 'burst'>) {
  const keys = createRateLimit(options)
  // Less than one a second is too little to share.
  const keptForKey = options.perSecond < 1 ? 0 : 0.25
  const families = createRateLimit({ ...options, perSecond: options.perSecond / 2 })
  return {
    /** As `RateLimit.take`, for an API key or one of its tokens. */
    take(holder: Holder): number {
      const { keyId, family } = holder
      const isToken = family !== keyId
      const wait = isToken ? families.wait(family) : 0
      if (wait > 0) return wait
      const waitOfKey = keys.take(rateNameOf(holder), isToken ? keptForKey : 0)
      if (waitOfKey === 0 && isToken) families.take(family)
      return waitOfKey
    },
  }
}
