/**
 * The versions of a registry's entries. An entry is made of records that anything may change: a request, a fixture, the
 * base URL. So a change is noticed when the entry is read, and then has a version of its own.
 */

import { type Clock, timestampOf } from '../../clock.ts'
import type { PublishedEntry } from '../../model/registry.ts'
import type { RegistryEntry } from '../../model/server-json.ts'
import { textOf } from '../../storage/bytes.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { entryOf, type Unversioned } from './registry-entries.ts'

/** A server that a registry lists. `view`: '' for the endpoint of the namespace. */
interface Publishable {
  readonly view: string
  readonly createdAt: string
  readonly server: Unversioned
}

/** The entries with their versions, which are written if an entry has changed. Throws StoreError. */
export function publishedEntries(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  namespace: string,
  all: readonly Publishable[],
): Promise<RegistryEntry[]> {
  const keys = all.map(({ view }) => keyOf('publishedEntry', namespace, view))
  return decideAgain(`the registry of ${namespace}`, async () => {
    const stored = await store.getMany(keys)
    const now = timestampOf(clock)
    const entries = all.map((one, at) => ({ ...one, key: keys[at] as Uint8Array, ...versionOf(one, stored[at], now) }))
    const changed = entries.filter(({ isChanged }) => isChanged)
    if (changed.length > 0) {
      const written = await store.commit({
        checks: changed.map(({ key, before }) => ({ key, value: before ?? null })),
        puts: changed.map(({ key, published }) => ({ key, value: Buffer.from(JSON.stringify(published)) })),
      })
      if (!written.ok) return 'again'
    }
    return entries.map(({ server, published }) => entryOf(server, published))
  })
}

function versionOf({ server, createdAt }: Publishable, before: Uint8Array | undefined, now: string) {
  const stored = before && (JSON.parse(textOf(before)) as PublishedEntry)
  // One of the same name that was made later has versions of its own.
  const former = stored?.publishedAt === createdAt ? stored : undefined
  const hash = Bun.SHA256.hash(JSON.stringify(server), 'base64').slice(0, 22)
  if (former?.hash === hash) return { before, isChanged: false, published: former }
  const version = former ? { changes: former.changes + 1, updatedAt: now } : { changes: 0, updatedAt: createdAt }
  return { before, isChanged: true, published: { hash, publishedAt: createdAt, ...version } }
}
