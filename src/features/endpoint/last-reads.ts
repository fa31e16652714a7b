/** When the lists of each connection were read last, and what came of it. */

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../clock.ts'
import type { ListProblem } from './list-problem.ts'

/** Connections whose last read is remembered. Past it: the least recently used one is read at its next use. */
const readsKnownMax = 20_000
/** Milliseconds after a read in which the lists are not read again, though their server says that they have changed. */
const changedRestMs = 1000

interface LastRead {
  /** A hash of what was asked. */
  readonly of: string
  /** By the monotonic clock. */
  readonly at: number
  readonly problem: ListProblem | undefined
  /** Whether the lists are said to have changed since. */
  readonly isOutdated?: boolean
}

/** By the names of connections. */
export function createLastReads(clock: Pick<Clock, 'monotonic'>) {
  const reads = new LRUCache<string, LastRead>({ max: readsKnownMax })
  return {
    /** The last read, and milliseconds since then; undefined if none is known. */
    of(name: string): (LastRead & { readonly age: number }) | undefined {
      const last = reads.get(name)
      return last && { ...last, age: clock.monotonic() - last.at }
    },
    note(name: string, of: string, problem: ListProblem | undefined): void {
      reads.set(name, { of, at: clock.monotonic(), problem })
    },
    /** Calls `read`, once for all changes that a server tells of within a second of the last read: when it is over. */
    noteChanged(name: string, read: () => void): void {
      const last = reads.get(name)
      const rest = last === undefined ? 0 : last.at + changedRestMs - clock.monotonic()
      if (last === undefined || rest <= 0) {
        read()
        return
      }
      if (last.isOutdated === true) return
      reads.set(name, { ...last, isOutdated: true })
      const ifOutdated = () => {
        if (reads.get(name)?.isOutdated === true) read()
      }
      setTimeout(ifOutdated, rest).unref()
    },
  }
}
