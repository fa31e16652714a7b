/**
 * Jobs that wait, taken in rounds: one of each owner in turn and, of an owner, one of each of its families of tokens.
 * So many jobs of one owner, or of many tokens, keep nobody else's from their turn.
 */

import { waitingJobsMax } from '../limits.ts'
import { type Holder, ownerOf } from './owner.ts'

export interface Rounds<Job> {
  /** False, and nothing is added, if the family has `waitingJobsMax` jobs waiting, or the owner twice as many. */
  add(holder: Holder, job: Job): boolean
  /** Puts a job that has had its turn back, behind the others. */
  putBack(holder: Holder, job: Job): void
  /** Removes and returns the next job of an owner that `mayGo` accepts. */
  next(mayGo?: (owner: string) => boolean): { readonly holder: Holder; readonly job: Job } | undefined
  /** Whether the holder's owner has jobs waiting. */
  isWaiting(holder: Holder): boolean
  isEmpty(): boolean
}

interface Waiting<Job> {
  readonly holder: Holder
  readonly job: Job
}

export function createRounds<Job>(): Rounds<Job> {
  /** By owner and family. Maps keep the order of insertion: the first owner and family have the next turn. */
  const owners = new Map<string, { count: number; readonly families: Map<string, Waiting<Job>[]> }>()

  function put(holder: Holder, job: Job, most: number): boolean {
    const name = ownerOf(holder)
    const owner = owners.get(name) ?? { count: 0, families: new Map<string, Waiting<Job>[]>() }
    const jobs = owner.families.get(holder.family) ?? []
    if (jobs.length >= most || owner.count >= 2 * most) return false
    jobs.push({ holder, job })
    owner.families.set(holder.family, jobs)
    owner.count += 1
    owners.set(name, owner)
    return true
  }

  return {
    add: (holder, job) => put(holder, job, waitingJobsMax),
    putBack: (holder, job) => void put(holder, job, Number.POSITIVE_INFINITY),
    next(mayGo = () => true) {
      for (const [name, owner] of owners) {
        if (!mayGo(name)) continue
        const [family] = owner.families
        if (family === undefined) continue
        const [familyName, jobs] = family
        const next = jobs.shift()
        // To the end of the round, both.
        owner.families.delete(familyName)
        if (jobs.length > 0) owner.families.set(familyName, jobs)
        owner.count -= 1
        owners.delete(name)
        if (owner.count > 0) owners.set(name, owner)
        return next
      }
      return undefined
    },
    isWaiting: (holder) => owners.has(ownerOf(holder)),
    isEmpty: () => owners.size === 0,
  }
}
