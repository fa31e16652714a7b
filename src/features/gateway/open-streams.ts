/**
 * Streams that are open, looked at again and again: one ends when its token is over, and soon after its token, key,
 * membership or connection has ended, whoever ended it. A look costs about a microsecond as long as nothing was
 * written.
 */

import { streamCheckIntervalMs, streamsCheckedPerTurn } from '../../limits.ts'

export interface OpenStreams {
  /** Until what it gives is called: where `look` rejects, `end` is called with that, once. */
  watch(look: () => Promise<unknown>, end: (why: unknown) => void): () => void
}

/** Calls `act` every so many milliseconds, until what it gives is called. */
export type Every = (milliseconds: number, act: () => void) => () => void

export const everyMoment: Every = (milliseconds, act) => {
  const timer = setInterval(act, milliseconds).unref()
  return () => clearInterval(timer)
}

export function createOpenStreams(every: Every = everyMoment): OpenStreams {
  const watched = new Set<() => void>()
  /** Those that this round has not looked at yet. */
  let round: (() => void)[] = []
  let stop: (() => void) | undefined

  /** After a write to the registry each looks its token up anew: thousands of them would hold up everybody else. */
  function lookOn(): void {
    for (const each of round.splice(0, streamsCheckedPerTurn)) each()
    if (round.length > 0) setImmediate(lookOn)
  }

  return {
    watch(look, end) {
      const over = () => {
        watched.delete(one)
        if (watched.size > 0) return
        stop?.()
        stop = undefined
      }
      const ended = (why: unknown) => {
        if (!watched.has(one)) return
        over()
        end(why)
      }
      const one = () => {
        if (watched.has(one)) look().catch(ended)
      }
      watched.add(one)
      stop ??= every(streamCheckIntervalMs, () => {
        // A round that takes longer than until the next is still under way.
        if (round.length > 0) return
        round = [...watched]
        lookOn()
      })
      return over
    },
  }
}
