/**
 * Divides a resource (slots or bytes) among all owners, so that no owner can take all of it. An owner may hold half of
 * what the other owners leave, and within an owner each key and each family of tokens half of what the others leave. So
 * some is always left for the next.
 */

import { type Holder, ownerOf } from './owner.ts'

export interface Shares {
  /** Takes the amount. Returns false, and takes nothing, if it exceeds the holder's share. */
  take(holder: Holder, amount: number): boolean
  /** Returns an amount that was taken. */
  giveBack(holder: Holder, amount: number): void
}

interface Owner {
  held: number
  readonly families: Map<string, number>
}

/** `total`: the amount that all holders may take together. */
export function createShares(total: number): Shares {
  const owners = new Map<string, Owner>()
  let held = 0

  return {
    take(holder, amount) {
      const name = ownerOf(holder)
      const { family } = holder
      const owner = owners.get(name) ?? { held: 0, families: new Map<string, number>() }
      const ofFamily = owner.families.get(family) ?? 0
      const forOwner = (total - (held - owner.held)) / 2
      const forFamily = (forOwner - (owner.held - ofFamily)) / 2
      if (ofFamily + amount > forFamily) return false
      held += amount
      owner.held += amount
      owner.families.set(family, ofFamily + amount)
      owners.set(name, owner)
      return true
    },
    giveBack(holder, amount) {
      const name = ownerOf(holder)
      const { family } = holder
      const owner = owners.get(name)
      const ofFamily = owner?.families.get(family)
      if (owner === undefined || ofFamily === undefined) return
      held -= amount
      owner.held -= amount
      if (ofFamily === amount) owner.families.delete(family)
      else owner.families.set(family, ofFamily - amount)
      if (owner.families.size === 0) owners.delete(name)
    },
  }
}
