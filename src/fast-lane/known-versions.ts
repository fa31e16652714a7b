/** Current versions, read synchronously and cached until the next commit by any process. */

import type { Key, LocalReads } from '../storage/store.ts'
import { versionText } from '../storage/versions.ts'

/** Versions of namespaces, some hundred bytes each. Past it: read again. */
const versionsKeptMax = 4000

export type LocalVersions = ReturnType<typeof createLocalVersions>

/** Of a store in this process. */
export function createLocalVersions(local: Pick<LocalReads, 'get' | 'commitCount'>) {
  const kept = new Map<string, { readonly key: Key; readonly commitCount: number; readonly version: string }>()
  return {
    /** The version under this key; '' if it was never written. `name` identifies the key in the cache. */
    current(name: string, keyOf: (name: string) => Key): string {
      const last = kept.get(name)
      // Read before the version: a commit in between then causes one read too many, never a stale version.
      const commitCount = local.commitCount()
      if (last !== undefined && last.commitCount === commitCount) return last.version
      const key = last?.key ?? keyOf(name)
      const version = versionText(local.get(key))
      if (kept.size >= versionsKeptMax) kept.clear()
      if (commitCount !== undefined) kept.set(name, { key, commitCount, version })
      return version
    },
  }
}
