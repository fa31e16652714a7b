/** Versions as they are now, asked without waiting: one is read again only after a commit. */

import { versionsKeptMax } from '../limits.ts'
import type { Key, LocalReads } from '../storage/store.ts'
import { versionText } from '../storage/versions.ts'

export interface LocalVersions {
  /** Of the part with this name and key; '' for one that was never written. */
  current(name: string, key: (name: string) => Key): string
}

export function createLocalVersions(local: Pick<LocalReads, 'get' | 'commitCount'>): LocalVersions {
  const kept = new Map<string, { readonly key: Key; readonly commitCount: number; readonly version: string }>()
  return {
    current(name, keyOf) {
      const last = kept.get(name)
      // Before the read: a commit that lands between the two makes for one read too many, and never for one too few.
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
