/**
 * Connections written ahead. LMDB holds what a transaction writes in memory until it commits, so a load of very many
 * is more than one transaction. What is of a namespace that does not exist can be reached by nobody: it is written in
 * several commits, and the one that brings the namespace shows all of it. The namespaces are noted before, so what a
 * load that was cut off has left is removed before the next, and nobody takes it for records until then.
 */

import { aheadCommitBytesMax } from '../limits.ts'
import { aheadKey, connectionsOf, namespaceIn, namespaceKey, prefixRange, privatesOf, termsIn } from './keys.ts'
import { asBuffer, type Check, type Entry, type Key, type Store } from './store.ts'

const removedAtOnce = 5000

/** To be put among the checks of whatever brings a namespace: nothing is being written ahead. */
export const nothingAhead: Check = { key: aheadKey, value: null }

export async function isAnythingAhead(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(aheadKey)) !== undefined
}

/** The namespaces that a note names. */
export function namespacesAhead(note: Uint8Array | undefined): ReadonlySet<string> {
  return new Set(note === undefined || note.length === 0 ? [] : asBuffer(note).toString().split('\n'))
}

/** Does the namespace hold no connections, nor anything of one? */
export async function isEmpty(store: Store, namespace: string): Promise<boolean> {
  for (const prefix of partsOf(namespace)) {
    if ((await store.keys({ ...prefixRange(prefix), limit: 1 })).keys.length > 0) return false
  }
  return true
}

function partsOf(namespace: string): readonly Key[] {
  return [connectionsOf(namespace), privatesOf(namespace), termsIn(namespace)]
}

export interface Ahead {
  /** Empty ones that do not exist. */
  readonly namespaces: readonly string[]
  /** Everything that is to be shown with them, each kind in the order of its keys. */
  readonly entries: Iterable<Entry>
  /** Of every commit. */
  readonly checks: readonly Check[]
}

/**
 * Durable when it resolves, and not to be seen; the commit that shows it deletes the note (`aheadKey`). False where
 * something else was written to the same place.
 */
export async function writeAhead(store: Store, { namespaces, entries, checks }: Ahead): Promise<boolean> {
  const hidden = [...checks, ...namespaces.map((name): Check => ({ key: namespaceKey(name), value: null }))]
  const note = Buffer.from(namespaces.join('\n'))
  const noted = await store.commit({ checks: [...hidden, nothingAhead], puts: [{ key: aheadKey, value: note }] })
  if (!noted.ok) return false
  const rest = entries[Symbol.iterator]()
  let ended = false
  /** The next of them, as many as one commit holds. */
  function* some(): Generator<Entry> {
    for (let bytes = 0; bytes < aheadCommitBytesMax; ) {
      const { done, value } = rest.next()
      if (done === true) {
        ended = true
        return
      }
      bytes += value.key.length + value.value.length
      yield value
    }
  }
  while (!ended) {
    if (!(await store.load({ checks: [...hidden, { key: aheadKey, value: note }], puts: some() })).ok) return false
    // A load holds up the process; requests get their turn between two of them.
    await new Promise((resolve) => setImmediate(resolve))
  }
  return true
}

/** Removes what a load that was cut off has left. Whoever calls it knows that no load is under way. */
export async function removeAhead(store: Store): Promise<void> {
  const note = await store.get(aheadKey)
  if (note === undefined) return
  for (const namespace of namespacesAhead(note)) {
    for (const prefix of partsOf(namespace)) {
      for (let more = true; more; ) {
        const left = await store.keys({ ...prefixRange(prefix), limit: removedAtOnce })
        more = left.more
        await store.load({ deletes: left.keys })
      }
    }
  }
  await store.commit({ deletes: [aheadKey] })
}

/** Is it the key of a connection of one of these namespaces, or of what belongs to one? */
export function isOf(namespaces: ReadonlySet<string>, key: Key): boolean {
  if (namespaces.size === 0 || !'cpx'.includes(String.fromCharCode(key[0] ?? 0))) return false
  return namespaces.has(namespaceIn(key))
}
