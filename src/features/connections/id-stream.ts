/**
 * Streams of connection ids, ascending, that can jump: the parts of an index plan. Each filter or constraint
 * is a stream over its own index entries; AND and OR combine them, so the rows of a page are found by
 * leaping from candidate to candidate and never by reading the namespace.
 *
 * Ids are ASCII, so the order of JavaScript's strings is the order of their bytes.
 */

import { eventLoopSliceMs, indexBatchMax, indexBatchMin } from '../../limits.ts'
import { idOfKey, prefixRange } from '../../storage/keys.ts'
import type { Key, Store } from '../../storage/store.ts'

export interface IdStream {
  /**
   * One bounded step. No id of the stream lies in [from, at); with `found`, `at` itself is one. Without,
   * `at` comes after `from`, so whoever asks again from there makes progress. Undefined at the end. Calls
   * never go backwards.
   */
  seek(from: string): Promise<Step | undefined> | Step | undefined
}

export interface Step {
  readonly at: string
  readonly found: boolean
}

/** What a whole plan has spent: index entries examined, and time in this turn of the event loop. */
export interface WorkBudget {
  examined: number
  turnStarted: number
}

/**
 * Ids below an index prefix. Reads ahead by a batch that grows while it is used up and shrinks while it is leapt
 * over.
 */
export function indexStream(store: Pick<Store, 'keys'>, prefix: Key, spending: WorkBudget): IdStream {
  const { lt } = prefixRange(prefix)
  let ids: readonly string[] = []
  let at = 0
  let more = true
  let batch = indexBatchMin

  async function fetch(from: string): Promise<Step | undefined> {
    batch = at * 2 >= ids.length ? Math.min(batch * 2, indexBatchMax) : Math.max(batch >> 1, indexBatchMin)
    const page = await store.keys({ gte: Buffer.concat([prefix, Buffer.from(from)]), lt, limit: batch })
    ids = page.keys.map((key) => idOfKey(prefix, key))
    more = page.more
    at = 0
    await yieldToEventLoop(spending)
    return step()
  }

  function step(): Step | undefined {
    const id = ids[at]
    if (id === undefined) return undefined
    spending.examined += 1
    return { at: id, found: true }
  }

  return {
    seek(from) {
      if (at < ids.length && (ids[ids.length - 1] as string) >= from) {
        at = lowerBound(ids, from, at)
        return step()
      }
      if (more) return fetch(from)
      at = ids.length
      return undefined
    },
  }
}

/** One id, where a constraint names the connection itself. Whether it exists shows when its record is read. */
export function singleStream(id: string): IdStream {
  return { seek: (from) => (id >= from ? { at: id, found: true } : undefined) }
}

/** Ids that are in every stream. A step is one round: each stream leaps to where the one before it stands. */
export function allOf(streams: readonly IdStream[]): IdStream {
  const [only] = streams
  if (only !== undefined && streams.length === 1) return only
  return {
    async seek(from) {
      let candidate = from
      let agreed = true
      for (const [index, stream] of streams.entries()) {
        const sought = stream.seek(candidate)
        const step = sought instanceof Promise ? await sought : sought
        if (step === undefined) return undefined
        agreed = step.found && agreed && (index === 0 || step.at === candidate)
        candidate = step.at
      }
      return { at: candidate, found: agreed }
    },
  }
}

/** Ids that are in any stream, each once; of no streams, none. The stream that is furthest behind sets the pace. */
export function anyOf(streams: readonly IdStream[]): IdStream {
  const [only] = streams
  if (only !== undefined && streams.length === 1) return only
  const heads: (Step | undefined)[] = streams.map(() => ({ at: '', found: false }))
  return {
    async seek(from) {
      let least: Step | undefined
      for (const [index, stream] of streams.entries()) {
        let head = heads[index]
        if (head !== undefined && (head.at < from || (head.at === from && !head.found))) {
          const sought = stream.seek(from)
          head = sought instanceof Promise ? await sought : sought
          heads[index] = head
        }
        if (head === undefined) continue
        if (least === undefined || head.at < least.at || (head.at === least.at && head.found)) least = head
      }
      return least
    },
  }
}

/** The least id after this one: no id lies between an id and itself with a NUL. */
export function successor(id: string): string {
  return `${id}\0`
}

/** Lets other requests have the event loop when this one has had its turn. */
async function yieldToEventLoop(spending: WorkBudget): Promise<void> {
  if (performance.now() - spending.turnStarted < eventLoopSliceMs) return
  await new Promise((resolve) => setImmediate(resolve))
  spending.turnStarted = performance.now()
}

/** The first position from `low` on whose id is `from` or comes after it. The last id does. */
function lowerBound(ids: readonly string[], from: string, low: number): number {
  let start = low
  let step = 1
  while (start + step < ids.length && (ids[start + step] as string) < from) {
    start += step
    step *= 2
  }
  let end = Math.min(start + step, ids.length - 1)
  while (start < end) {
    const middle = (start + end) >>> 1
    if ((ids[middle] as string) < from) start = middle + 1
    else end = middle
  }
  return start
}
