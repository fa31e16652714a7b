/** Deletes the connections of deleted namespaces, and ends the sign-ins of these at their servers. */

import type { SharedParts } from '../../auth/shared-parts.ts'
import type { Clock } from '../../clock.ts'
import type { Holder } from '../../fairness/owner.ts'
import { Queue } from '../../fairness/queue.ts'
import { type Removal, removeAllDeleted, removeDeleted } from '../../storage/deleted-namespaces.ts'
import type { Store } from '../../storage/store.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/token-refresh.ts'

/** The platform itself, where it continues what a process left. */
const platform: Holder = { keyId: '\0deletions', family: '\0deletions' }

interface DeletionParts extends Pick<SharedParts, 'store' | 'clock'> {
  readonly credentials: Pick<UpstreamCredentials, 'revoke'>
}

/** One for a process: each write of a deletion holds the event loop for milliseconds, so owners take turns. */
export class Deletions {
  readonly #store: Store
  readonly #clock: Clock
  readonly #credentials: Pick<UpstreamCredentials, 'revoke'>
  readonly #places = new Queue(1, 1)

  constructor({ store, clock, credentials }: DeletionParts) {
    this.#store = store
    this.#clock = clock
    this.#credentials = credentials
  }

  /** Resolves when nothing is left of a namespace whose record is deleted. */
  remove(namespace: string, holder: Holder): Promise<void> {
    return removeDeleted(this.#store, namespace, this.#removalFor(holder))
  }

  /** Continues deletions that were interrupted: at start, and every hour. */
  continueAll(): Promise<void> {
    return removeAllDeleted(this.#store, this.#removalFor(platform))
  }

  #removalFor(holder: Holder): Removal {
    return {
      clock: this.#clock,
      enter: () => this.#places.enter(holder),
      onRemoved: (ref, removed) => this.#credentials.revoke(ref, removed, 'its namespace was deleted'),
    }
  }
}
