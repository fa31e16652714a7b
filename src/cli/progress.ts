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
  return {
    /** Cheap enough to call for every item. `total` is undefined while it is unknown. */
    step(stage: string, done: number, total?: number) {
      const now = performance.now()
      if (now - shownAt < (bar?.isActive ? 100 : quietMs)) return
      shownAt = now
      if (bar === undefined) return log.info('progress', { stage, done, total })
      if (!bar.isActive) bar.start(total ?? done, done, { stage })
      bar.setTotal(total ?? done)
      bar.update(done, { stage })
    },
    end: () => bar?.stop(),
  }
}

/** For a command, which has no log of its own. */
export function commandProgress({ stderr }: Terminal) {
  return createProgress(createLog(stderr))
}
