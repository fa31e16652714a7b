/** A store whose reader lets others go first: a load of fixtures reads each record, and local reads never wait. */

import { type Clock, systemClock } from '../../clock.ts'
import { eventLoopSliceMs } from '../../limits.ts'
import { nextTurn } from '../../next-turn.ts'
import type { Store } from '../../storage/store.ts'

/** The store, which gives others a turn of the event loop before a read whenever `eventLoopSliceMs` have passed. */
export function patientStore(store: Store, clock: Pick<Clock, 'monotonic'> = systemClock): Store {
  let began = clock.monotonic()
  const pause = async () => {
    if (clock.monotonic() - began < eventLoopSliceMs) return
    await nextTurn()
    began = clock.monotonic()
  }
  return {
    ...store,
    get: async (key) => {
      await pause()
      return store.get(key)
    },
    getMany: async (keys) => {
      await pause()
      return store.getMany(keys)
    },
  }
}
