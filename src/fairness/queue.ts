/**
 * A queue with a number of places, given to waiting tasks in rounds among owners (`rounds.ts`). A task keeps its place
 * until it has ended, however often it waits for the store meanwhile.
 */

import { rateLimited } from '../errors.ts'
import { type Holder, ownerOf } from './owner.ts'
import { Rounds } from './rounds.ts'

/** Removals that come before other tasks, in a row. Past it: another has its turn, as endless ones held up all. */
const removalsInARowMax = 3

export class Queue {
  readonly #places: number
  readonly #placesOfOwner: number
  readonly #waitingMax: number | undefined
  readonly #removals = new Rounds<(leave: () => void) => void>()
  readonly #others = new Rounds<(leave: () => void) => void>()
  readonly #taken = new Map<string, number>()
  #free: number
  #removalsInARow = 0

  /**
   * `places`: tasks that run at once; of these, `placesOfOwner` of one owner. `waitingMax`: tasks of one family of
   * tokens that wait; `waitingJobsMax` if left out.
   */
  constructor(places: number, placesOfOwner: number, waitingMax?: number) {
    this.#places = places
    this.#placesOfOwner = placesOfOwner
    this.#waitingMax = waitingMax
    this.#free = places
  }

  /**
   * Waits for a place, and resolves with a function that leaves it. `isRemoval`: it takes access away, and comes first,
   * `removalsInARowMax` times. Rejects with `rate_limited` if too many tasks of the holder wait.
   */
  async enter(holder: Holder, isRemoval = false): Promise<() => void> {
    const leave = this.enterNow(holder)
    if (leave !== undefined) return leave
    const { promise, resolve } = Promise.withResolvers<() => void>()
    if (!(isRemoval ? this.#removals : this.#others).add(holder, resolve, this.#waitingMax))
      throw rateLimited('This caller has too many requests of this kind in progress', 1)
    this.#admit()
    return promise
  }

  /** As `enter`, where a place is free and nobody waits for it; otherwise undefined. */
  enterNow(holder: Holder): (() => void) | undefined {
    const isFirst = this.#removals.isEmpty && this.#others.isEmpty
    return this.#free > 0 && this.#mayGo(ownerOf(holder)) && isFirst ? this.#give(holder) : undefined
  }

  /** Whether no task has a place, or waits for one. */
  get isIdle(): boolean {
    return this.#free === this.#places && this.#removals.isEmpty && this.#others.isEmpty
  }

  #mayGo = (owner: string) => (this.#taken.get(owner) ?? 0) < this.#placesOfOwner

  #give(holder: Holder): () => void {
    const owner = ownerOf(holder)
    this.#free -= 1
    this.#taken.set(owner, (this.#taken.get(owner) ?? 0) + 1)
    return () => {
      this.#free += 1
      const left = (this.#taken.get(owner) ?? 0) - 1
      if (left > 0) this.#taken.set(owner, left)
      else this.#taken.delete(owner)
      // Later, so that requests of others are read in between: a task may have held the event loop.
      setImmediate(() => this.#admit())
    }
  }

  #admit(): void {
    while (this.#free > 0) {
      const isOthersTurn = this.#removalsInARow >= removalsInARowMax && !this.#others.isEmpty
      const removal = isOthersTurn ? undefined : this.#removals.next(this.#mayGo)
      const next = removal ?? this.#others.next(this.#mayGo) ?? this.#removals.next(this.#mayGo)
      if (next === undefined) return
      this.#removalsInARow = removal === undefined ? 0 : this.#removalsInARow + 1
      next.job(this.#give(next.holder))
    }
  }
}

/** Queues by name, each with one place. A queue is here while it has tasks. */
export class Queues {
  readonly #queues = new Map<string, Queue>()

  /** Runs a task alone among those of this name. Rejects with what the task throws, and as `Queue.enter`. */
  async run<T>(name: string, holder: Holder, task: () => Promise<T>, isRemoval?: boolean): Promise<T> {
    const queue = this.#queues.get(name) ?? new Queue(1, 1)
    this.#queues.set(name, queue)
    const leave = await queue.enter(holder, isRemoval)
    try {
      return await task()
    } finally {
      leave()
      if (queue.isIdle) this.#queues.delete(name)
    }
  }
}
