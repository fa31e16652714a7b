/** Current versions, read synchronously and cached until the next commit by any process. */

import { directoryVersionKey, keyOf } from '../storage/keys.ts'
import type { Key, LocalReads } from '../storage/store.ts'
import { versionText } from '../storage/versions.ts'

/** Versions of namespaces, some hundred bytes each. Past it: read again. */
const versionsKeptMax = 4000

/** Of a store in this process. */
export function createLocalVersions(local: Pick<LocalReads, 'get' | 'commitCount'>) {
  const kept = new Map<string, { readonly key: Key; readonly commitCount: number; readonly version: string }>()
  return {
    /** The version of a namespace's connections, or without a name of the directory; '' if it was never written. */
    current(namespace = ''): string {
      const last = kept.get(namespace)
      // Read before the version: a commit in between then causes one read too many, never a stale version.
      const commitCount = local.commitCount()
      if (last !== undefined && last.commitCount === commitCount) return last.version
      const key = last?.key ?? (namespace === '' ? directoryVersionKey : keyOf('connectionsVersion', namespace))
      const version = versionText(local.get(key))
      if (kept.size >= versionsKeptMax) kept.clear()
      if (commitCount !== undefined) kept.set(namespace, { key, commitCount, version })
      return version
    },
  }
}
