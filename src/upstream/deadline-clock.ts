/**
 * One coarse timer for the timeouts of all calls. Every call has timeouts, hardly any of them fires, and a timer of the
 * runtime costs two microseconds. So timeouts may fire up to `deadlineTickMs` late.
 */

/**
 * Interval at which deadlines of calls are checked, and after which a call checks that its client is still connected.
 * Within it: nothing counts as late.
 */
export const deadlineTickMs = 50

/** Ticks only while something is watched, and does not keep the process alive. */
export class DeadlineClock {
  readonly #watched = new Set<Watched>()
  #isTicking = false

  /** Calls `look` with `performance.now()` at every tick, until `end`. */
  watch(one: Watched): void {
    this.#watched.add(one)
    if (!this.#isTicking) this.#tickLater()
  }

  end(one: Watched): void {
    this.#watched.delete(one)
  }

  #tickLater(): void {
    this.#isTicking = true
    setTimeout(() => this.#tick(), deadlineTickMs).unref()
  }

  #tick(): void {
    const now = performance.now()
    for (const one of this.#watched) one.look(now)
    this.#isTicking = false
    if (this.#watched.size > 0) this.#tickLater()
  }
}

interface Watched {
  look(now: number): void
}
