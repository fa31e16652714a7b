/** Progress of long work: a bar on a terminal, otherwise one log line a second. */

import { Presets, SingleBar } from 'cli-progress'
import { createLog, type Log } from '../ops/log.ts'
import type { Terminal } from './terminal.ts'

/** Milliseconds before progress is shown, and between two log lines. */
const quietMs = 1000

/** Shows how far work is that takes longer than a second. Call `end` before printing anything else. */
export function createProgress(log: Log) {
  const bar = process.stderr.isTTY
    ? new SingleBar(
        { stream: process.stderr, format: '{stage} {bar} {percentage}% {value}/{total}', clearOnComplete: true },
        Presets.shades_grey,
      )
    : undefined
  let shownAt = performance.now()
  let started = false
  return {
    /** Cheap enough to call for every item. `total` is undefined while it is unknown. */
    step(stage: string, done: number, total?: number): void {
      const now = performance.now()
      if (now - shownAt < (started && bar !== undefined ? 100 : quietMs)) return
      shownAt = now
      if (bar === undefined) {
        log.info('progress', { stage, done, total })
        return
      }
      if (!started) bar.start(total ?? done, done, { stage })
      started = true
      bar.setTotal(total ?? done)
      bar.update(done, { stage })
    },
    end(): void {
      if (started) bar?.stop()
    },
  }
}

/** For a command, which has no log of its own. */
export function commandProgress({ stderr }: Terminal) {
  return createProgress(createLog(stderr))
}
