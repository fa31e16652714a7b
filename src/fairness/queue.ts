/**
 * A queue with a number of places, given to waiting tasks in rounds among owners (`rounds.ts`). A task keeps its place
 * until it has ended, however often it waits for the store meanwhile.
 */

import { rateLimited } from '../errors.ts'
import { type Holder, ownerOf } from './owner.ts'
import { createRounds } from './rounds.ts'

export interface QueueOptions {
  /** Tasks that run at once. */
  readonly places: number
  /** Of these, tasks of one owner. */
  readonly placesOfOwner: number
}

export interface Queue {
  /**
   * Waits for a place, and resolves with a function that leaves it. `isRemoval`: the task takes access away, and comes
   * before all that do not. Rejects with `rate_limited` if too many tasks of the holder wait already.
   */
  enter(holder: Holder, isRemoval?: boolean): Promise<() => void>
  /** Whether no task has a place, or waits for one. */
  isIdle(): boolean
}

export function createQueue({ places, placesOfOwner }: QueueOptions): Queue {
  const removals = createRounds<(leave: () => void) => void>()
  const others = createRounds<(leave: () => void) => void>()
  /** Places taken, by owner. */
  const taken = new Map<string, number>()
  let free = places

  const mayGo = (owner: string) => (taken.get(owner) ?? 0) < placesOfOwner

  function give(holder: Holder): () => void {
    const owner = ownerOf(holder)
    free -= 1
    taken.set(owner, (taken.get(owner) ?? 0) + 1)
    return () => {
      free += 1
      const left = (taken.get(owner) ?? 0) - 1
      if (left > 0) taken.set(owner, left)
      else taken.delete(owner)
      // Later, so that requests of others are read in between: a task may have held the event loop.
      setImmediate(admit)
    }
  }

  function admit(): void {
    while (free > 0) {
      const next = removals.next(mayGo) ?? others.next(mayGo)
      if (next === undefined) return
      next.job(give(next.holder))
    }
  }

  return {
    isIdle: () => free === places && removals.isEmpty() && others.isEmpty(),
    async enter(holder, isRemoval = false) {
      if (free > 0 && mayGo(ownerOf(holder)) && removals.isEmpty() && others.isEmpty()) return give(holder)
      const { promise, resolve } = Promise.withResolvers<() => void>()
      if (!(isRemoval ? removals : others).add(holder, resolve))
        throw rateLimited('This caller has too many requests of this kind in progress', 1)
      admit()
      return promise
    },
  }
}

/** Queues by name, each with one place. */
export interface Queues {
  /** Runs a task alone among those of this name. Rejects with what the task throws, and as `Queue.enter`. */
  run<T>(name: string, holder: Holder, task: () => Promise<T>, isRemoval?: boolean): Promise<T>
}

export function createQueues(): Queues {
  /** A queue is here while it has tasks. */
  const queues = new Map<string, Queue>()
  return {
    async run(name, holder, task, isRemoval) {
      const queue = queues.get(name) ?? createQueue({ places: 1, placesOfOwner: 1 })
      queues.set(name, queue)
      const leave = await queue.enter(holder, isRemoval)
      try {
        return await task()
      } finally {
        leave()
        if (queue.isIdle()) queues.delete(name)
      }
    },
  }
}
