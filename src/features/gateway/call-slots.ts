/** Limits concurrent requests per connection to `concurrentCallsMax`, divided fairly among its callers. */

import { createShares, type Shares } from '../../fairness/shares.ts'
import { concurrentCallsMax } from '../../limits.ts'
import { once } from './once.ts'
import type { UpstreamCall } from './upstream-call.ts'
import { tooMany } from './upstream-failure.ts'

export interface CallSlots {
  /** Takes a slot. Returns a function that releases it; further calls do nothing. Throws `rate_limited`. */
  acquire(call: Pick<UpstreamCall, 'ref' | 'holder' | 'message'>): () => void
}

export function createCallSlots(): CallSlots {
  /** Entries exist only while a connection has requests in flight, so the map does not grow with the namespace. */
  const byConnection = new Map<string, { readonly shares: Shares; taken: number }>()
  return {
    acquire({ ref: { namespace, connectionId }, holder, message }) {
      const name = `${namespace}/${connectionId}`
      const slots = byConnection.get(name) ?? { shares: createShares(concurrentCallsMax), taken: 0 }
      if (!slots.shares.take(holder, 1)) {
        throw tooMany('This caller has too many concurrent requests on this connection', message)
      }
      slots.taken += 1
      byConnection.set(name, slots)
      return once(() => {
        slots.shares.giveBack(holder, 1)
        slots.taken -= 1
        if (slots.taken === 0) byConnection.delete(name)
      })
    },
  }
}
