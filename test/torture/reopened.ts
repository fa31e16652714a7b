/**
 * A store that one process after another opens: loads, large and small, mass deletions, and kills in the middle of
 * them. LMDB leaves its file shorter than its last page where a transaction gave back what it took, so a sound file is
 * not told by its length. Whatever was committed must be opened and found whole; a file that was cut must be told.
 */

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { random } from '../support/random.ts'
import { workplace } from '../support/workplace.ts'
import { collector, type Seen, type Trial, tooSeldom } from './trial.ts'

/** Of the rounds, every so many look at damaged copies too. */
const damagedEvery = 10
/** The most rounds, to each that was asked for. */
const roundsMore = 20

export const reopened: Trial = {
  name: 'reopened',
  promise: 'An intact store is never reported as damaged, even after kill -9; a store with a missing page always is',
  times: { full: 2000, short: 8 },

  async run(times, seed) {
    const { broken, expect } = collector()
    // The short torture, whose seed is 1, meets a file that is short after nine openings so, and else after thirty.
    const own = seed + 5
    const chance = random(own + 5)
    using place = workplace()
    const folder = join(place.folder, 'store')
    const file = join(folder, 'data.mdb')
    const seen = { killed: 0, short: 0, cut: 0, told: 0, overwritten: 0 }
    const atLeast = (): Seen => ({ killed: [seen.killed, 1], short: [seen.short, 1], told: [seen.told, 1] })
    let round = 0
    // Which files are short is not ours to choose, so it goes on until it has seen some.
    const isEnough = () => round >= times && tooSeldom(atLeast()).length === 0
    for (; !isEnough() && round < times * roundsMore; round += 1) {
      const about = (what: string) => () => `round ${round}: ${what}`
      // Now and then from the beginning: a file without free pages inside is short more often.
      if (chance.chance(0.3)) rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder, { recursive: true })
      const killed = chance.chance(0.3)
      const wrote = await opening('write', folder, own * 100_003 + round, killed ? chance.int(30) : undefined)
      expect(wrote.code === 0 || killed, about(`a writer ended with ${wrote.code}: ${wrote.said}`))
      if (killed) seen.killed += 1
      const read = await opening('read', folder)
      expect(read.code === 0 && !read.said.startsWith('other'), about(`a reader ended with ${read.code}: ${read.said}`))
      if (!existsSync(file)) continue
      const pages = statSync(file).size / 4096
      if (pages <= lastPage(file)) seen.short += 1

      if (round % damagedEvery !== 0) continue
      const copy = join(place.folder, 'copy')
      rmSync(copy, { recursive: true, force: true })
      mkdirSync(copy)
      copyFileSync(file, join(copy, 'data.mdb'))
      const isCut = chance.chance(0.7)
      if (isCut) truncateSync(join(copy, 'data.mdb'), chance.int(pages * 4096))
      else {
        const bytes = readFileSync(file)
        const at = chance.int(2) * 4096 + 24
        bytes.fill(0, at, at + 1 + chance.int(100))
        writeFileSync(join(copy, 'data.mdb'), bytes)
      }
      seen[isCut ? 'cut' : 'overwritten'] += 1
      const after = await opening('read', copy)
      if (after.code === 3) seen.told += 1
      // What was cut off may have been in no use.
      const isRight = after.code === 3 || (after.code === 0 && isCut && after.said === read.said)
      expect(
        isRight,
        about(`a file of ${pages} pages ${isCut ? 'cut' : 'overwritten'} gave ${after.code} ${after.said}`),
      )
    }
    const figure = `${round} openings after loads and deletions, ${seen.killed} of them killed: ${seen.short} intact files ended before the last page that their head names, and none was reported as damaged; of ${seen.cut} files that the trial cut off and ${seen.overwritten} that it overwrote, ${seen.told} were reported as damaged, and the others still had all their data`
    return { figure, broken, seen: atLeast() }
  },
}

/** What a process said of the store, and how it ended. Killed so many milliseconds after it began to write. */
async function opening(mode: 'write' | 'read', folder: string, seed = 0, killAfterMs?: number) {
  const script = join(import.meta.dir, 'reopened-process.ts')
  const child = Bun.spawn([process.execPath, script, mode, folder, String(seed)], { stdout: 'pipe', stderr: 'pipe' })
  let said = ''
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += text
    if (killAfterMs !== undefined && text.includes('begins')) {
      await Bun.sleep(killAfterMs)
      child.kill('SIGKILL')
    }
  }
  const code = await child.exited
  return { code, said: said.trim() }
}

/** The last page that LMDB counts. */
function lastPage(file: string): number {
  const bytes = readFileSync(file).subarray(0, 2 * 4096)
  const metas = [0, 4096].map((at) => ({
    transaction: bytes.readBigUInt64LE(at + 0x98),
    page: Number(bytes.readBigUInt64LE(at + 0x90)),
  }))
  return metas.sort((a, b) => Number(b.transaction - a.transaction))[0]?.page ?? 0
}
