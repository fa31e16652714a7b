/**
 * Divides slots or bytes among all owners. An owner may hold half of what the others leave, and within it each key and
 * each family of tokens half of what others leave. So some is always left for the next.
 */

import { type Holder, ownerOf } from './owner.ts'

export class Shares {
  readonly #total: number
  #held = 0
  /** Amounts by owner, and by family; a family has one owner. */
  readonly #owners = new Map<string, number>()
  readonly #families = new Map<string, number>()

  constructor(total: number) {
    this.#total = total
  }

  /** Takes the amount. Returns false, and takes nothing, if it exceeds the holder's share. */
  take(holder: Holder, amount: number): boolean {
    const ofOwner = this.#owners.get(ownerOf(holder)) ?? 0
    const ofFamily = this.#families.get(holder.family) ?? 0
    const forOwner = (this.#total - (this.#held - ofOwner)) / 2
    const forFamily = (forOwner - (ofOwner - ofFamily)) / 2
    if (ofFamily + amount > forFamily) return false
    this.giveBack(holder, -amount)
    return true
  }

  giveBack(holder: Holder, amount: number): void {
    this.#held -= amount
    lower(this.#owners, ownerOf(holder), amount)
    lower(this.#families, holder.family, amount)
  }
}

function lower(amounts: Map<string, number>, name: string, by: number): void {
  const left = (amounts.get(name) ?? 0) - by
  if (left > 0) amounts.set(name, left)
  else amounts.delete(name)
}
