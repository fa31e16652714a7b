/**
 * Leftovers: connections whose namespace no longer exists. Programs before this one left them when a namespace was
 * removed with its fixture; now such a namespace stays (`seed/staying.ts`). They are unreachable until the namespace
 * returns, and then belong to its new owner; or an operator removes them.
 */

import { leftoverBatchMax, leftoverMarksMax } from '../limits.ts'
import { connectionChange, findConnection } from './connections.ts'
import { connectionsOf, idOfKey, latin1Key, left, leftKey, namespaceKey, prefixRange } from './keys.ts'
import type { Key, Store } from './store.ts'

/**
 * The ids of a namespace's connections, in batches of at most `leftoverBatchMax`. The batches are separate snapshots.
 */
async function* idsOf(store: Pick<Store, 'keys'>, namespace: string): AsyncGenerator<string[]> {
  const prefix = connectionsOf(namespace)
  let { gte, lt } = prefixRange(prefix)
  for (;;) {
    const { keys, more } = await store.keys({ gte, lt, limit: leftoverBatchMax })
    const last = keys.at(-1)
    if (last === undefined) return
    yield keys.map((key) => idOfKey(prefix, key))
    if (!more) return
    gte = Buffer.concat([last, Buffer.of(0)])
  }
}

/**
 * Finds what remains when the records with the keys `going` (as `latin1Key` text) are removed. `counts`: the
 * connections of each namespace among them that do not go. `staleMarks`: the marks of the namespaces in `staying`.
 */
export async function leftBehind(
  store: Pick<Store, 'keys'>,
  going: ReadonlySet<string>,
  staying: Iterable<string>,
): Promise<{
  readonly counts: ReadonlyMap<string, number>
  readonly staleMarks: readonly Key[]
}> {
  const counts = new Map<string, number>()
  const first = latin1Key(namespaceKey(''))
  for (const name of going) {
    if (!name.startsWith(first)) continue
    const namespace = name.slice(first.length)
    const prefix = latin1Key(connectionsOf(namespace))
    let count = 0
    for await (const ids of idsOf(store, namespace)) count += ids.filter((id) => !going.has(prefix + id)).length
    if (count > 0) counts.set(namespace, count)
  }
  const { keys: marked } = await store.keys({ ...prefixRange(left), limit: leftoverMarksMax })
  const stays = new Set([...staying].map((namespace) => latin1Key(leftKey(namespace))))
  return { counts, staleMarks: marked.filter((key) => stays.has(latin1Key(key))) }
}

/**
 * Removes all leftovers of a namespace, unless the namespace exists again. Resolves with their number, when durable.
 */
export async function removeLeftovers(store: Store, namespace: string): Promise<number> {
  const isGone = { key: namespaceKey(namespace), value: null }
  let removed = 0
  for await (const ids of idsOf(store, namespace)) {
    const commits = ids.map(async (connectionId) => {
      const found = await findConnection(store, namespace, connectionId)
      if (found === undefined) return false
      const change = connectionChange(namespace, connectionId, found, undefined)
      // If the namespace has returned meanwhile, its owner can use them: the check fails and they stay.
      return (await store.commit({ ...change, checks: [...(change.checks ?? []), isGone] })).ok
    })
    removed += (await Promise.all(commits)).filter((isRemoved) => isRemoved).length
  }
  await store.commit({ deletes: [leftKey(namespace)] })
  return removed
}
