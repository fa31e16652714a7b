/**
 * Connections of a namespace that is not there: they were made at run time, which no reload of fixtures undoes, and
 * their namespace went with its fixture. Nobody reaches them. They are back when the namespace is, for whoever owns it
 * then; or an operator removes them.
 */

import { leftoverBatchMax, leftoverMarksMax } from '../limits.ts'
import { connectionChange, findConnection } from './connections.ts'
import { connectionsOf, idOfKey, latin1Key, left, leftKey, namespaceKey, prefixRange } from './keys.ts'
import type { Store, Write } from './store.ts'

/** The ids of a namespace's connections, some at a time. */
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
 * How many connections each namespace leaves behind when the records of these keys go (as `latin1Key` has them), and
 * what is to be written with that: a mark for each, so that nobody takes it for lost; none for a namespace that is
 * there.
 */
export async function leftBehind(
  store: Pick<Store, 'keys'>,
  going: ReadonlySet<string>,
  staying: Iterable<string>,
): Promise<{
  readonly counts: ReadonlyMap<string, number>
  readonly marks: Required<Pick<Write, 'deletes' | 'puts'>>
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
  return {
    counts,
    marks: {
      deletes: marked.filter((key) => stays.has(latin1Key(key))),
      puts: [...counts.keys()].map((namespace) => ({ key: leftKey(namespace), value: nothing })),
    },
  }
}

const nothing = new Uint8Array(0)

/** Removes all that a namespace has left behind, as long as it is not there. Resolves with how many, when durable. */
export async function removeLeftovers(store: Store, namespace: string): Promise<number> {
  const isGone = { key: namespaceKey(namespace), value: null }
  let removed = 0
  for await (const ids of idsOf(store, namespace)) {
    const commits = ids.map(async (connectionId) => {
      const found = await findConnection(store, namespace, connectionId)
      if (found === undefined) return false
      const change = connectionChange(namespace, connectionId, found, undefined)
      // Where it came back meanwhile, they are somebody's again.
      return (await store.commit({ ...change, checks: [...(change.checks ?? []), isGone] })).ok
    })
    removed += (await Promise.all(commits)).filter((isRemoved) => isRemoved).length
  }
  await store.commit({ deletes: [leftKey(namespace)] })
  return removed
}
