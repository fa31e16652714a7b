/**
 * Generations as they are now. A generation is a value that every write to its part of the store replaces
 * in the same commit; whoever remembers something remembers the generation it was read under. Where the
 * engine has a stamp, a generation is read again only after a commit.
 */

import { generationsKeptMax } from '../limits.ts'
import { type Soon, then } from '../model/soon.ts'
import { keyText } from './keys.ts'
import type { Key, Store } from './store.ts'

export interface Generations {
  /** Of the part of this name, as text; '' for a part that was never written. A promise only where it must be read. */
  current(name: string): Soon<string>
}

/** `keyOf` gives the key of a part's generation. */
export function createGenerations(store: Pick<Store, 'get' | 'stamp'>, keyOf: (name: string) => Key): Generations {
  const known = new Map<string, { readonly key: Key; readonly stamp: number; readonly generation: string }>()

  function read(name: string, key: Key): Soon<string> {
    // Before the read: a commit that lands between the two makes for one read too many, and never for one too few.
    const stamp = store.stamp()
    return then(store.get(key), (value) => {
      const generation = value === undefined ? '' : keyText(value)
      if (known.size >= generationsKeptMax) known.clear()
      if (stamp !== undefined) known.set(name, { key, stamp, generation })
      return generation
    })
  }

  return {
    current(name) {
      const last = known.get(name)
      return last !== undefined && last.stamp === store.stamp() ? last.generation : read(name, last?.key ?? keyOf(name))
    },
  }
}
