/**
 * A store that is written to while other processes open it, as every command beside a server does. LMDB as lmdb-js
 * brings it loses commits then (`src/storage/lmdb/opening-lock.ts`); the control, which opens without the lock, must.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { workplace } from '../support/workplace.ts'
import { collector, type Trial } from './trial.ts'

interface Seen {
  readonly acknowledged: number
  readonly lost: number
  /** How often the number of the last transaction was less than before. */
  readonly steppedBack: number
}

/** The control has so many times as many openings to show that it loses commits; in few it may be lucky. */
const controlRounds = 8
/** With fewer openings there is no control. */
const controlledFrom = 100

export const opened: Trial = {
  name: 'opened',
  promise:
    'No acknowledged write is lost while other processes open the store (the control, without a lock, must lose some)',
  times: { full: 600, short: 12 },

  async run(times) {
    const { broken, expect } = collector()
    using place = workplace()
    const guarded = await openings(join(place.folder, 'guarded'), times, 'guarded')
    const { acknowledged = 0, lost = -1, steppedBack = -1 } = guarded ?? {}
    expect(guarded !== undefined, () => 'the process that writes crashed')
    expect(lost === 0, () => `${lost} of ${acknowledged} acknowledged writes are lost`)
    expect(steppedBack === 0, () => `the number of the last transaction went back ${steppedBack} times`)
    const figure = `${times} openings during ${acknowledged} acknowledged writes: ${lost} lost`
    const seen = { 'acknowledged writes': [acknowledged, times] } as const
    if (times < controlledFrom) return { figure, broken, seen }
    let round = 0
    for (let isSafe = true; isSafe && round < controlRounds; round += 1) {
      const bare = await openings(join(place.folder, `bare-${round}`), times, 'bare')
      // What reads pages that are not its own may crash.
      isSafe = bare !== undefined && bare.lost + bare.steppedBack === 0
      if (isSafe && round === controlRounds - 1) broken.push('the control lost nothing')
    }
    return { figure: `${figure}; the control lost a write within ${round * times} openings`, broken, seen }
  },
}

/** Undefined if the writing process crashed. */
async function openings(folder: string, times: number, how: 'guarded' | 'bare'): Promise<Seen | undefined> {
  mkdirSync(folder)
  const script = join(import.meta.dir, 'opening-child.ts')
  const child = Bun.spawn([process.execPath, script, 'write', folder, String(times), how], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const text = await new Response(child.stdout).text()
  return (await child.exited) === 0 ? JSON.parse(text) : undefined
}
