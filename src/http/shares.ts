/**
 * Something that all callers share, places or bytes, so that none of them can take it all. A caller may hold half of
 * what the others leave, and so may each token among those that were minted with one API key: whoever comes next
 * always finds some.
 */

/** Whom a share belongs to. */
export interface Holder {
  /** The id of the API key. */
  readonly keyId: string
  /** The token that all its relatives were minted from, or the key itself. */
  readonly family: string
}

export interface Shares {
  /** False where the holder has its share already, and nothing is taken then. */
  take(holder: Holder, amount: number): boolean
  giveBack(holder: Holder, amount: number): void
}

interface Key {
  held: number
  readonly families: Map<string, number>
}

export function createShares(total: number): Shares {
  const keys = new Map<string, Key>()
  let held = 0

  return {
    take({ keyId, family }, amount) {
      const key = keys.get(keyId) ?? { held: 0, families: new Map<string, number>() }
      const ofFamily = key.families.get(family) ?? 0
      const forKey = (total - (held - key.held)) / 2
      const forFamily = (forKey - (key.held - ofFamily)) / 2
      if (ofFamily + amount > forFamily) return false
      held += amount
      key.held += amount
      key.families.set(family, ofFamily + amount)
      keys.set(keyId, key)
      return true
    },
    giveBack({ keyId, family }, amount) {
      const key = keys.get(keyId)
      const ofFamily = key?.families.get(family)
      if (key === undefined || ofFamily === undefined) return
      held -= amount
      key.held -= amount
      if (ofFamily === amount) key.families.delete(family)
      else key.families.set(family, ofFamily - amount)
      if (key.families.size === 0) keys.delete(keyId)
    },
  }
}
