/**
 * Staged connections. LMDB keeps the writes of a transaction in memory until the commit, so a very large load
 * needs several transactions. Connections of a namespace that does not exist are unreachable: they are written in
 * several commits, and the commit that creates the namespace makes all of them visible. Before that, the namespaces are
 * listed in a note (`stagedKey`), so that the next load removes what an interrupted load left, and verify and export
 * skip it.
 */

import { nextTurn } from '../next-turn.ts'
import { textOf } from './bytes.ts'
import { keyOf, namespaceIn, prefixOf, prefixRange, stagedKey } from './keys.ts'
import { entryBytes, piecesOf } from './pieces.ts'
import type { Check, Entry, Key, Store } from './store.ts'

/** Bytes of keys and values in one commit of a large load; they are in memory twice. Past it: the next commit. */
const stagedCommitBytesMax = 8 * 2 ** 20

/** Keys removed in one transaction. */
const removedAtOnce = 5000

/** Every write that creates a namespace must include this check: it fails while anything is staged. */
export const nothingStaged: Check = { key: stagedKey, value: null }

export async function isAnythingStaged(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(stagedKey)) !== undefined
}

/** The namespaces listed in a note (the value of `stagedKey`). */
export function stagedNamespaces(note: Uint8Array | undefined): ReadonlySet<string> {
  return new Set(note === undefined || note.length === 0 ? [] : textOf(note).split('\n'))
}

/** True if the namespace has no connections, no private parts and no index entries. */
export async function isEmpty(store: Store, namespace: string): Promise<boolean> {
  for (const prefix of partsOf(namespace)) {
    if ((await store.keys({ ...prefixRange(prefix), limit: 1 })).keys.length > 0) return false
  }
  return true
}

/** The key prefixes under which a namespace's connections are stored. */
function partsOf(namespace: string): readonly Key[] {
  return (['connection', 'connectionPrivate', 'indexEntry'] as const).map((kind) => prefixOf(kind, namespace))
}

/**
 * Writes connections, private parts and index entries, each kind in key order, of namespaces that do not exist and hold
 * nothing: durable when it resolves, and still invisible. The commit that makes them visible must delete the note
 * (`stagedKey`). Resolves with false after a concurrent write to the same place; the note and some entries may then
 * remain until `removeStaged`.
 */
export async function stageConnections(
  store: Store,
  namespaces: readonly string[],
  entries: Iterable<Entry>,
): Promise<boolean> {
  const hidden = namespaces.map((name): Check => ({ key: keyOf('namespace', name), value: null }))
  const note = Buffer.from(namespaces.join('\n'))
  const noted = await store.commit({ checks: [...hidden, nothingStaged], puts: [{ key: stagedKey, value: note }] })
  if (!noted.ok) return false
  const checks = [...hidden, { key: stagedKey, value: note }]
  for (const puts of piecesOf(entries, { bytes: stagedCommitBytesMax, bytesOf: entryBytes })) {
    if (!(await store.load({ checks, puts })).ok) return false
    // load() blocks the event loop; let requests run between two loads.
    await nextTurn()
  }
  return true
}

/** Removes what an interrupted load left. No load may be running. The note goes last, for the next to continue. */
export async function removeStaged(store: Store): Promise<void> {
  const note = await store.get(stagedKey)
  if (note === undefined) return
  for (const namespace of stagedNamespaces(note)) {
    for (const prefix of partsOf(namespace)) {
      for (let more = true; more; ) {
        const left = await store.keys({ ...prefixRange(prefix), limit: removedAtOnce })
        more = left.more
        await store.load({ deletes: left.keys })
      }
    }
  }
  await store.commit({ deletes: [stagedKey] })
}

/** True for the key of a connection, private part or index entry in one of these namespaces. */
export function isOf(namespaces: ReadonlySet<string>, key: Key): boolean {
  if (namespaces.size === 0 || !'cpx'.includes(String.fromCharCode(key[0] ?? 0))) return false
  return namespaces.has(namespaceIn(key))
}
