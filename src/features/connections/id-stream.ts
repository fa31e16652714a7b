/**
 * Ascending streams of connection ids that can skip ahead: the parts of an index plan. Each filter or constraint is a
 * stream over its own index entries. AND and OR combine streams, so the rows of a page are found by skipping from
 * candidate to candidate, without scanning the namespace.
 *
 * Ids are ASCII, so JavaScript's string order equals their byte order.
 */

import type { Slices } from '../../fairness/slices.ts'
import { idOfKey, prefixRange } from '../../storage/keys.ts'
import type { Key, Store } from '../../storage/store.ts'

/** Ours: index entries that postern reads ahead where a list skips most of them. Past it: the batch size doubles each time the list uses most of a batch. */
export const indexBatchMin = 8
/** Ours: index entries that postern reads ahead where a list uses most of them. Past it: postern reads the next batch. */
export const indexBatchMax = 256

/** Contract 16.6: index entries that postern reads at once from a store on another machine. Past it: postern reads the next batch. */
const indexBatchRemote = 1000

/**
 * One bounded step. The stream has no id in [from, at). If `found`, `at` is an id of the stream; if not, `at` is greater
 * than `from`, so that seeking from there makes progress. Undefined at the end of the stream. `from` must not decrease
 * between calls.
 */
export type IdStream = (from: string) => Sought

type Sought = Promise<Step | undefined> | Step | undefined

export interface Step {
  readonly at: string
  readonly found: boolean
}

/** The work of a whole plan. */
export interface PlanWork {
  /** Index entries so far. */
  examined: number
  readonly slices: Slices
}

/**
 * The ids under an index prefix, read in batches. The batch size doubles while most of a batch is used, and halves
 * while most of it is skipped. Where a read is a round trip to another machine, batches are as large as they may be.
 */
export function indexStream(store: Pick<Store, 'keys' | 'isRemote'>, prefix: Key, work: PlanWork): IdStream {
  const [batchMin, batchMax] =
    store.isRemote === true ? [indexBatchRemote, indexBatchRemote] : [indexBatchMin, indexBatchMax]
  const { lt } = prefixRange(prefix)
  let ids: readonly string[] = []
  let at = 0
  let more = true
  let batch = batchMin

  async function fetch(from: string): Promise<Step | undefined> {
    while (work.slices.isOver) await work.slices.next()
    batch = at * 2 >= ids.length ? Math.min(batch * 2, batchMax) : Math.max(batch >> 1, batchMin)
    const page = await store.keys({ gte: Buffer.concat([prefix, Buffer.from(from)]), lt, limit: batch })
    ids = page.keys.map((key) => idOfKey(prefix, key))
    more = page.more
    at = 0
    return step()
  }

  function step(): Step | undefined {
    const id = ids[at]
    if (id === undefined) return undefined
    work.examined += 1
    return { at: id, found: true }
  }

  return (from) => {
    const last = ids.at(-1)
    if (last !== undefined && last >= from) {
      while ((ids[at] as string) < from) at += 1
      return step()
    }
    return more ? fetch(from) : undefined
  }
}

/** One id, for a constraint that names a connection. The connection may not exist; reading its record shows that. */
export function singleStream(id: string): IdStream {
  return (from) => (id >= from ? { at: id, found: true } : undefined)
}

/** The intersection. One step is one round, in which each stream skips ahead to the position of the one before it. */
export function allOf(streams: readonly IdStream[]): IdStream {
  const [only] = streams
  if (only !== undefined && streams.length === 1) return only
  return (from) => round(streams, 0, { at: from, found: true })
}

/** A round from the stream at `index` on, with the position before it. */
function round(streams: readonly IdStream[], index: number, before: Step): Sought {
  const stream = streams[index]
  if (stream === undefined) return before
  const next = (step: Step) => round(streams, index + 1, index === 0 ? step : together(before, step))
  const sought = stream(before.at)
  // No promise where nothing is waited for: a plan may take 100,000 steps.
  return sought instanceof Promise ? sought.then((step) => step && next(step)) : sought && next(sought)
}

/** The position after two streams: an id where both have it. */
function together(one: Step, other: Step): Step {
  return { at: other.at, found: one.found && other.found && one.at === other.at }
}

/** The union, without duplicates; empty for no streams. Each step returns the lowest position of all streams. */
export function anyOf(streams: readonly IdStream[]): IdStream {
  const [only] = streams
  if (only !== undefined && streams.length === 1) return only
  const heads: (Step | undefined)[] = streams.map(() => ({ at: '', found: false }))

  function least(): Step | undefined {
    let lowest: Step | undefined
    for (const head of heads) {
      if (head === undefined) continue
      if (lowest === undefined || head.at < lowest.at || (head.at === lowest.at && head.found)) lowest = head
    }
    return lowest
  }

  return (from) => {
    // All that wait are waited for together: each may be a round trip.
    const waiting: Promise<void>[] = []
    for (const [index, stream] of streams.entries()) {
      const head = heads[index]
      if (head === undefined || head.at > from || (head.at === from && head.found)) continue
      const sought = stream(from)
      const arrived = (step: Step | undefined) => {
        heads[index] = step
      }
      if (sought instanceof Promise) waiting.push(sought.then(arrived))
      else arrived(sought)
    }
    return waiting.length === 0 ? least() : Promise.all(waiting).then(least)
  }
}

/** The lower bound for ids after this one: NUL is the lowest byte and never occurs in an id. */
export function successor(id: string): string {
  return `${id}\0`
}
