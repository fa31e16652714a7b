/**
 * `make mutants`: does any fast test notice when one thing in the core of the program is changed?
 *
 *   bun test/mutants/run.ts [COUNT] [--seed N] [--at FILE[:LINE[:COLUMN]]]...
 *
 * COUNT changes (300), chosen by the seed; or all those at these places. Prints
 * those that no test noticed. Exits with 1 when fewer than nine in ten were noticed, not counting those that
 * `equal.json` says are no change at all.
 */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import equal from './equal.json' with { type: 'json' }
import { type Mutant, mutantsOf, sample } from './sites.ts'
import { openSuites } from './suites.ts'
import { copyOfTree } from './tree.ts'

const core = [
  'src/auth',
  'src/fairness',
  'src/fast-lane',
  'src/features/connections',
  'src/features/endpoint',
  'src/features/gateway',
  'src/features/pins',
  'src/features/servers',
  'src/features/tokens',
  'src/http',
  'src/model',
  'src/policy',
  'src/schema',
  'src/storage',
  'src/upstream',
]
/** All that the tests read. */
const parts = ['src', 'test', 'fixtures', 'docs', 'bunfig.toml', 'package.json', 'package-lock.json', 'tsconfig.json']
const shareMin = 0.9
/** Whoever decides something else must be noticed, or nobody is listening. */
const canaryFile = 'src/policy/decide.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, at: { type: 'string', multiple: true } },
})
const count = Number(positionals[0] ?? 300)
const seed = values.seed === undefined ? Date.now() % 1e6 : Number(values.seed)
/** The same wherever in its file it stands. */
const nameOf = ({ file, before, after }: Mutant) => `${file} ${before} ${after}`
const placeOf = ({ file, line, column }: Mutant) => `${file}:${line}:${column}`
const equals: readonly { file: string; before: string; after: string }[] = equal
const isSame = (one: (typeof equals)[number], { file, before, after }: Mutant) =>
  one.file === file && one.before === before && one.after === after
const isKnown = (mutant: Mutant) => equals.some((one) => isSame(one, mutant))

const started = performance.now()
const seconds = () => Math.round((performance.now() - started) / 1000)

process.exitCode = await main()

async function main(): Promise<number> {
  using tree = copyOfTree(parts)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      tree[Symbol.dispose]()
      process.exit(1)
    })
  }
  const files = core.flatMap((folder) =>
    readdirSync(join(tree.folder, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .map((name) => `${folder}/${name}`),
  )
  const all = await mutantsOf(tree.folder, files)
  const { at: places } = values
  const isAt = (mutant: Mutant) =>
    places?.some((place) => mutant.file === place || `${placeOf(mutant)}:`.startsWith(`${place}:`))
  const chosen = places === undefined ? sample(all, count, seed, nameOf) : all.filter(isAt)
  if (chosen.length === 0) throw new Error(`nothing can be changed at ${places?.join(', ')}`)
  for (const one of equals) {
    if (!all.some((mutant) => isSame(one, mutant)))
      console.log(`equal.json: not in ${one.file} any more: ${one.before}`)
  }
  console.log(`${chosen.length} of ${all.length} changes in ${files.length} files, seed ${seed}`)

  const suites = await openSuites(tree)
  const canary = all.find(({ file, replacement }) => file === canaryFile && replacement === '!==')
  if (canary === undefined || (await suites.notice(canary)).by === undefined)
    throw new Error(`no test noticed the change that all must: ${canary === undefined ? canaryFile : placeOf(canary)}`)
  console.log(`${suites.all.length} suites pass on the program as it is, and notice the canary (${seconds()} s)`)

  let known = 0
  let tooLong = 0
  const survivors: Mutant[] = []
  for (const [index, mutant] of chosen.entries()) {
    if (isKnown(mutant)) {
      known += 1
      continue
    }
    const verdict = await suites.notice(mutant)
    if (verdict.tooLong) tooLong += 1
    if (verdict.by !== undefined) continue
    survivors.push(mutant)
    const who = `${verdict.asked} suites asked`
    console.log(`${placeOf(mutant)} (${who}; ${index + 1}/${chosen.length}, ${seconds()} s)`)
    console.log(`  - ${mutant.before}\n  + ${mutant.after}`)
  }
  const tried = chosen.length - known
  const noticed = tried - survivors.length
  const share = tried === 0 ? 1 : noticed / tried
  console.log(
    `${noticed} of ${tried} noticed (${(share * 100).toFixed(1)} %), ${tooLong} of them by taking too long; ${known} more are known to change nothing; ${seconds()} s`,
  )
  if (share >= shareMin) return 0
  console.error(`fewer than ${shareMin * 100} %; again: bun test/mutants/run.ts ${count} --seed ${seed}`)
  return 1
}
