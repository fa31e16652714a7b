/**
 * Jobs that wait, taken in rounds: one of each owner in turn and, of an owner, one of each of its families of tokens.
 * So many jobs of one owner, or of many tokens, keep nobody else's from their turn.
 */

import { waitingJobsMax } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'

interface Waiting<Job> {
  readonly holder: Holder
  readonly job: Job
}

export class Rounds<Job> {
  /** By owner and family. Maps keep the order of insertion: the first owner and family have the next turn. */
  readonly #owners = new Map<string, { count: number; readonly families: Map<string, Waiting<Job>[]> }>()

  /**
   * False, and nothing is added, if the family has `most` jobs waiting, or the owner twice as many. `turns.ts`
   * puts a job that is not done behind the others again, and passes Infinity: such a job always finds room.
   */
  add(holder: Holder, job: Job, most = waitingJobsMax): boolean {
    const name = ownerOf(holder)
    const owner = this.#owners.get(name) ?? { count: 0, families: new Map<string, Waiting<Job>[]>() }
    const jobs = owner.families.get(holder.family) ?? []
    if (jobs.length >= most || owner.count >= 2 * most) return false
    jobs.push({ holder, job })
    owner.families.set(holder.family, jobs)
    owner.count += 1
    this.#owners.set(name, owner)
    return true
  }

  next(mayGo: (owner: string) => boolean = () => true): Waiting<Job> | undefined {
    for (const [name, owner] of this.#owners) {
      if (!mayGo(name)) continue
      const [family] = owner.families
      if (family === undefined) continue
      const [familyName, jobs] = family
      const next = jobs.shift()
      // To the end of the round, both.
      owner.families.delete(familyName)
      if (jobs.length > 0) owner.families.set(familyName, jobs)
      owner.count -= 1
      this.#owners.delete(name)
      if (owner.count > 0) this.#owners.set(name, owner)
      return next
    }
    return undefined
  }

  isWaiting(holder: Holder): boolean {
    return this.#owners.has(ownerOf(holder))
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0
  }
}
