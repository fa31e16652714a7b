/**
 * Rechecks the authorization of open streams. Every `streamCheckIntervalMs` each stream is authorized again, and ended
 * if its token has expired, or its token, key, membership or connection was revoked or removed, by whichever
 * process. A check takes about a microsecond unless the directory has changed.
 */

import { streamCheckIntervalMs } from '../../limits.ts'

/** Streams checked in one turn of the event loop; a token that is not cached takes 0.25 ms. Past it: the next turn. */
export const streamsCheckedPerTurn = 16

/** Calls `look` until it rejects, then `end` with the error. Returns a function that stops watching without `end`. */
export type WatchStream = (look: () => Promise<unknown>, end: (why: unknown) => void) => () => void

/** Calls `act` every `milliseconds`. Returns a function that stops it. */
export type Every = (milliseconds: number, act: () => void) => () => void

/** By the system's timer, which does not keep the process alive. */
export const everyMoment: Every = (milliseconds, act) => {
  const timer = setInterval(act, milliseconds).unref()
  return () => clearInterval(timer)
}

/** `every` is replaced in tests. One timer serves all streams, and runs only while there are any. */
export function createOpenStreams(every: Every = everyMoment): WatchStream {
  const watched = new Set<() => void>()
  /** Streams that the current round has yet to check. */
  let round: (() => void)[] = []
  let stop: (() => void) | undefined

  /** In batches: after a directory write each check is a full look-up, and thousands would block the event loop. */
  function lookOn(): void {
    for (const each of round.splice(0, streamsCheckedPerTurn)) each()
    if (round.length > 0) setImmediate(lookOn)
  }

  return (look, end) => {
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
    // The stream may have ended between the start of the round and its turn.
    const one = () => {
      if (watched.has(one)) look().catch(ended)
    }
    watched.add(one)
    stop ??= every(streamCheckIntervalMs, () => {
      // The previous round is still running.
      if (round.length > 0) return
      round = [...watched]
      lookOn()
    })
    return over
  }
}
