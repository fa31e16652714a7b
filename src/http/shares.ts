/**
 * Divides a resource (slots or bytes) among all callers, so that no caller can take all of it. An API key may hold half
 * of what the other keys leave, and within a key each family of tokens half of what the other families leave. So some
 * is always left for the next caller.
 */

/** The owner of a share. */
export interface Holder {
  /** The id of the API key. */
  readonly keyId: string
  /** The id of the first token of the family, or of the API key if it is used directly. */
  readonly family: string
}

export interface Shares {
  /** Takes the amount. Returns false, and takes nothing, if it exceeds the holder's share. */
  take(holder: Holder, amount: number): boolean
  /** Returns an amount that was taken. */
  giveBack(holder: Holder, amount: number): void
}

interface Key {
  held: number
  readonly families: Map<string, number>
}

/** `total`: the amount that all holders may take together. */
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
