/** Deletes the connections of deleted namespaces, and ends the sign-ins of these at their servers. */

import type { SharedParts } from '../../auth/shared-parts.ts'
import type { Holder } from '../../fairness/owner.ts'
import { Queue } from '../../fairness/queue.ts'
import { type Removal, removeAllDeleted, removeDeleted } from '../../storage/deleted-namespaces.ts'
import type { UpstreamCredentials } from '../upstream-sign-in/token-refresh.ts'

/** The platform itself, where it continues what a process left. */
const platform: Holder = { keyId: '\0deletions', family: '\0deletions' }

interface DeletionParts extends Pick<SharedParts, 'store' | 'clock'> {
  readonly credentials: Pick<UpstreamCredentials, 'revoke'>
}

export type Deletions = ReturnType<typeof createDeletions>

/** One for a process: each write of a deletion holds the event loop for milliseconds, so owners take turns. */
export function createDeletions({ store, clock, credentials }: DeletionParts) {
  const places = new Queue(1, 1)
  const removalFor = (holder: Holder): Removal => ({
    clock,
    enter: () => places.enter(holder),
    onRemoved: (ref, removed) => credentials.revoke(ref, removed, 'its namespace was deleted'),
  })
  return {
    /** Resolves when nothing is left of a namespace whose record is deleted. */
    remove: (namespace: string, holder: Holder): Promise<void> => removeDeleted(store, namespace, removalFor(holder)),
    /** Continues deletions that were interrupted: at start, and every hour. */
    continueAll: (): Promise<void> => removeAllDeleted(store, removalFor(platform)),
  }
}
