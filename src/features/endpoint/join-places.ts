/** Places and time in which large lists are joined: of one owner, one use of them is under way at a time. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { Queue } from '../../fairness/queue.ts'
import type { Size } from './list-problem.ts'

/** Bytes of lists that are joined without a place: most have fewer. Past it: the request waits for one. */
export const largeBytes = 256 * 1024
/**
 * Milliseconds for a megabyte of lists that are joined, most of which is the collection of what that leaves behind.
 * Counted against `ownerTimeShare`. Past it: the owner waits.
 */
const joinMsPerMegabyte = 20
/** Bytes that a definition counts as besides its own: thousands of tiny ones are as many objects. */
const bytesPerDefinition = 256
/** Owners whose large lists are joined, or wait for their owner's time. Past it: further requests wait. */
const joinersAtOnceMax = 32
/** Ours: requests that join large lists at once, one for each owner. Past it: further requests wait. */
const joinsAtOnceMax = 4

export class JoinPlaces {
  /** Owners that wait for their time, or join. */
  readonly #joiners = new Queue(joinersAtOnceMax, 1)
  readonly #joins = new Queue(joinsAtOnceMax, 1)

  /** Resolves with the place, to be disposed of. Rejects with `rate_limited`, and if the client has gone. */
  async enter({ caller, request }: RequestContext, { bytes, definitions }: Size): Promise<Disposable> {
    const allowance = allowanceOf(request)
    using places = new DisposableStack()
    places.defer(await this.#joiners.enter(caller))
    // Before the place: an owner that waits for its time holds up nobody else.
    await allowance.pace(((bytes + definitions * bytesPerDefinition) / 2 ** 20) * joinMsPerMegabyte)
    places.defer(await this.#joins.enter(caller))
    allowance.requireClient()
    return places.move()
  }
}
