/**
 * `make torture`, and with `short` the part of it that `make test` runs.
 *
 *   bun test/torture/run.ts [short] [--only NAME]… [--without NAME]… [--seed N] [--times N] [--report FILE]
 *
 * Prints each trial with its figure and verdict. Exits with 1 when a promise was broken; what it prints then is
 * the line that repeats the trial. With `--report`, the results are in that file, in JUnit's format.
 */

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Written, writeResults } from '../results/junit.ts'
import { anyReplica } from './any-replica.ts'
import { attenuation } from './attenuation.ts'
import { damage } from './damage.ts'
import { directoryKill } from './directory-kill.ts'
import { failover } from './failover.ts'
import { forgedTokens } from './forged-tokens.ts'
import { fuzz } from './fuzz.ts'
import { heavy } from './heavy.ts'
import { heldConnections } from './held-connections.ts'
import { hostileSignIns } from './hostile-sign-ins.ts'
import { hostileUpstream } from './hostile-upstream.ts'
import { kill } from './kill.ts'
import { oneAnswer } from './one-answer.ts'
import { oneOwner } from './one-owner.ts'
import { opened } from './opened.ts'
import { oracle } from './oracle.ts'
import { pinKill } from './pin-kill.ts'
import { powerCuts } from './power-cuts.ts'
import { reopened } from './reopened.ts'
import { signInKill } from './sign-in-kill.ts'
import { signInRecords } from './sign-in-records.ts'
import { simulation } from './simulation.ts'
import { soak } from './soak.ts'
import { type Outcome, type Trial, tooSeldom } from './trial.ts'
import { veryMany } from './very-many.ts'

const trials: readonly Trial[] = [
  // Waits for half a minute at its end, while others run.
  heldConnections,
  heavy,
  oneOwner,
  veryMany,
  soak,
  failover,
  kill,
  directoryKill,
  signInKill,
  pinKill,
  hostileUpstream,
  anyReplica,
  powerCuts,
  opened,
  reopened,
  damage,
  fuzz,
  hostileSignIns,
  signInRecords,
  forgedTokens,
  attenuation,
  simulation,
  oracle,
  oneAnswer,
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', multiple: true },
    without: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string' },
    times: { type: 'string' },
    report: { type: 'string' },
  },
})
const size = positionals[0] === 'short' ? 'short' : 'full'
// The short run is the same every time; the full one looks somewhere else each time.
const seed = values.seed === undefined ? (size === 'short' ? 1 : Date.now() % 1e9) : Number(values.seed)
const { only, without } = values
const chosen = trials.filter(({ name, times }) =>
  only === undefined ? times[size] > 0 && !without.includes(name) : only.includes(name),
)
if (chosen.length === 0) throw new Error(`no such trial; there are ${trials.map(({ name }) => name).join(', ')}`)

const started = performance.now()
let isBroken = false
const results: Written[] = []
console.log(`| Promise | Seen | Seed ${seed} |\n|---|---|---|`)
const waiting: Promise<void>[] = []
// They take longest. The whole torture measures the failover's times, too.
const first = chosen.filter((trial) => size === 'short' && [oneOwner, failover, hostileUpstream].includes(trial))
for (const trial of first) waiting.push(report(trial, () => {}))
for (const trial of chosen.filter(({ isTimed }) => isTimed)) await begin(trial)
// Most of them wait for disks, databases and restarts.
const atOnce = size === 'short' ? 5 : 1
const others = chosen.filter((trial) => trial.isTimed !== true && !first.includes(trial)).values()
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (const trial of others) await begin(trial)
  }),
)
await Promise.all(waiting)
if (values.report !== undefined) writeFileSync(values.report, writeResults(results))
console.error(`\n${Math.round((performance.now() - started) / 1000)} s in all`)
process.exit(isBroken ? 1 : 0)

function failed(error: unknown): Outcome {
  return { figure: 'it did not come to its end', broken: [String(error)], seen: {} }
}

/** Resolves when the trial is over, or only waits. */
async function begin(trial: Trial): Promise<void> {
  const { promise: onlyWaits, resolve: goOn } = Promise.withResolvers<void>()
  const over = report(trial, goOn)
  waiting.push(over)
  await Promise.race([onlyWaits, over])
}

async function report(trial: Trial, goOn: () => void): Promise<void> {
  const times = values.times === undefined ? trial.times[size] : Number(values.times)
  const from = performance.now()
  const outcome = await trial.run(times, seed, goOn).catch(failed)
  const { figure, missing } = outcome
  const broken = [...outcome.broken, ...(missing === undefined ? tooSeldom(outcome.seen) : [])]
  const seconds = Math.round((performance.now() - from) / 1000)
  const verdict = missing === undefined ? (broken.length === 0 ? 'held' : 'NOT HELD') : `not looked at: ${missing}`
  console.log(`| ${trial.promise} | ${figure}, in ${seconds} s | ${verdict} |`)
  results.push({
    file: `test/torture/${trial.name}.ts`,
    title: trial.promise,
    seconds,
    ...(missing !== undefined && { skipped: missing }),
    ...(broken.length > 0 && { failure: broken.join('\n') }),
  })
  // Some machines let nobody trace; the whole torture is for one that does.
  if (missing !== undefined && size === 'full') isBroken = true
  if (broken.length > 0) {
    isBroken = true
    for (const one of broken) console.error(`  ${trial.name}: ${one}`)
    console.error(`  again: bun test/torture/run.ts --only ${trial.name} --seed ${seed} --times ${times}`)
  }
}
