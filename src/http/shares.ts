/**
 * Divides a resource (slots or bytes) among all callers, so that no caller can take all of it. An API key may hold half
 * of what the other keys leave, and within a key each family of tokens half of what the other families leave. So some
 * is always left for the next caller.
 */

import { isOrganizationUser } from '../model/names.ts'

/** The owner of a share. */
export interface Holder {
  /** The id of the API key. */
  readonly keyId: string
  /** The id of the first token of the family, or of the API key if it is used directly. */
  readonly family: string
  /** The user of the key. */
  readonly userId?: string
}

/** All keys of an organization hold one share: its admins make as many keys as they like. */
export function ownerOf({ keyId, userId }: Holder): string {
  return userId !== undefined && isOrganizationUser(userId) ? userId : keyId
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
    take(holder, amount) {
      const [owner, { family }] = [ownerOf(holder), holder]
      const key = keys.get(owner) ?? { held: 0, families: new Map<string, number>() }
      const ofFamily = key.families.get(family) ?? 0
      const forKey = (total - (held - key.held)) / 2
      const forFamily = (forKey - (key.held - ofFamily)) / 2
      if (ofFamily + amount > forFamily) return false
      held += amount
      key.held += amount
      key.families.set(family, ofFamily + amount)
      keys.set(owner, key)
      return true
    },
    giveBack(holder, amount) {
      const [owner, { family }] = [ownerOf(holder), holder]
      const key = keys.get(owner)
      const ofFamily = key?.families.get(family)
      if (key === undefined || ofFamily === undefined) return
      held -= amount
      key.held -= amount
      if (ofFamily === amount) key.families.delete(family)
      else key.families.set(family, ofFamily - amount)
      if (key.families.size === 0) keys.delete(owner)
    },
  }
}
