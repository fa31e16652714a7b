/** Limits concurrent requests per connection to `concurrentCallsMax`, divided fairly among its callers. */

import { Shares } from '../../fairness/shares.ts'
import { concurrentCallsMax } from '../../limits.ts'
import { tooMany, type UpstreamCall } from './upstream-call.ts'

/** A function that takes a slot, and returns one that releases it, to be called once. Throws `rate_limited`. */
export function createCallSlots() {
  /** Entries exist only while a connection has requests in flight, so the map does not grow with the namespace. */
  const byConnection = new Map<string, { readonly shares: Shares; taken: number }>()
  return ({ connection, holder, message }: Pick<UpstreamCall, 'connection' | 'holder' | 'message'>) => {
    const name = `${connection.namespace}/${connection.connectionId}`
    const slots = byConnection.get(name) ?? { shares: new Shares(concurrentCallsMax), taken: 0 }
    if (!slots.shares.take(holder, 1)) {
      throw tooMany('This caller has too many concurrent requests on this connection', message)
    }
    slots.taken += 1
    byConnection.set(name, slots)
    return () => {
      slots.shares.giveBack(holder, 1)
      slots.taken -= 1
      if (slots.taken === 0) byConnection.delete(name)
    }
  }
}
