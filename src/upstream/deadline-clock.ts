/**
 * One coarse timer for the timeouts of all calls. Every call has timeouts, hardly any of them fires, and a timer of the
 * runtime costs two microseconds. So timeouts may fire up to `deadlineTickMs` late.
 */

/** Interval at which deadlines of calls, and whether clients are connected, are checked. Within it: nothing is late. */
export const deadlineTickMs = 50

/** Ticks only while something is watched, and does not keep the process alive. */
export class DeadlineClock {
  readonly #watched = new Set<Watched>()
  #timer: Timer | undefined

  /** Calls `look` with `performance.now()` at every tick, until `end`. */
  watch(one: Watched): void {
    this.#watched.add(one)
    this.#timer ??= setInterval(() => this.#tick(), deadlineTickMs).unref()
  }

  end(one: Watched): void {
    this.#watched.delete(one)
  }

  #tick(): void {
    const now = performance.now()
    for (const one of this.#watched) one.look(now)
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

interface Watched {
  look(now: number): void
}
