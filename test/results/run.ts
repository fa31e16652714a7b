/**
 * `make test`: runs every stage, whichever fails, and then says what was skipped and why, and what failed. Fails too
 * where a threat (`threats.json`) names a test that did not run. Exits with 1 if anything failed.
 */

import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import bunfig from '../../bunfig.toml'
import threats from '../threats.json' with { type: 'json' }
import { readResults } from './junit.ts'
import { type Ended, verdictOf, verdictText } from './verdict.ts'

interface Stage {
  readonly name: string
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** It writes what became of each of its tests into the file that this argument and the next name. */
  readonly reportBy?: readonly string[]
}

const root = resolve(import.meta.dir, '../..')
const folder = join(root, 'dist/test-results')
const program = (name: string) => join(root, 'node_modules/.bin', name)
// The runner's workers do not read its timeout in bunfig.toml.
const tests = (atOnce: number) => [
  process.execPath,
  'test',
  `--parallel=${atOnce}`,
  // Files share what they import: loading it anew takes a sixth of all time.
  '--no-isolate',
  `--timeout=${bunfig.test.timeout}`,
  '--only-failures',
  // Milliseconds of the slowest files, about: they begin first, so that none runs alone at the end.
  '--timings=test/results/slowest.json',
]
// Optimizing most of all is for what runs longer than a test, and so is giving memory back: taking it again is an eighth
// of the time of the tests in this process.
const env = { BUN_JSC_useFTLJIT: '0', MIMALLOC_PURGE_DELAY: '-1' }
const reportBy = ['--reporter=junit', '--reporter-outfile']
/** Trials that take half a minute or more, and little of the processor. */
const waiting = ['held-connections', 'hostile-upstream', 'one-owner']
const torture = (...which: readonly string[]) => ({
  command: [process.execPath, 'test/torture/run.ts', 'short', ...which],
  reportBy: ['--report'],
})

/** One line after the other; the stages of a line at once. Two cores are busy all the time. */
const stages: readonly (readonly Stage[])[] = [
  [
    { name: 'types', command: [program('tsc'), '--noEmit'] },
    { name: 'types of the console', command: [program('tsc'), '--noEmit', '-p', 'src/console'] },
    { name: 'style', command: [program('biome'), 'ci', '.'] },
  ],
  // Two more files than cores at once: some wait for a database or for another process.
  [
    { name: 'tests', command: tests(availableParallelism() + 2), env, reportBy },
    { name: 'torture that mostly waits', ...torture(...waiting.flatMap((name) => ['--only', name])) },
  ],
  [
    {
      // Without it: the suites of what the fast lane keeps, which are callers, admissions and lists.
      name: 'tests without the fast lane',
      command: [...tests(1), ...cachedByTheFastLane()],
      env: { ...env, POSTERN_TEST_FAST_LANE: 'off' },
      reportBy,
    },
    { name: 'torture', ...torture(...waiting.flatMap((name) => ['--without', name])) },
  ],
]

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
const ended: Ended[] = []
for (const [line, atOnce] of stages.entries())
  ended.push(...(await Promise.all(atOnce.map((stage, index) => run(stage, join(folder, `${line}-${index}.xml`))))))
const verdict = verdictOf(threats, ended)
console.log(verdictText(verdict))
process.exit(verdict.failed.length > 0 ? 1 : 0)

async function run({ name, command, env = {}, reportBy }: Stage, file: string): Promise<Ended> {
  console.log(`\n${name}:`)
  const started = performance.now()
  const report = reportBy === undefined ? [] : [...reportBy, file]
  const child = Bun.spawn([...command, ...report], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await child.exited
  console.log(
    `${name}: ${code === 0 ? 'passed' : `ended with ${code}`}, in ${Math.round((performance.now() - started) / 1000)} s`,
  )
  return { name, code, ...(reportBy !== undefined && { results: resultsIn(file) }) }
}

/** None, where the stage ended before it wrote them. */
function resultsIn(file: string) {
  try {
    return readResults(readFileSync(file, 'utf8'))
  } catch {
    return []
  }
}

function cachedByTheFastLane(): string[] {
  const suites = [
    'auth/**/*',
    'http/middleware',
    // Lists are compared with the oracle in both ways among the others.
    'features/organizations/{attenuation,namespaces}',
    'features/tokens/token-handlers',
    // Calls have callers and admissions alone.
    'features/gateway/forward',
  ]
  const files = suites.flatMap((suite) => [...new Bun.Glob(`test/${suite}.test.ts`).scanSync(root)])
  return files.filter((file) => readFileSync(join(root, file), 'utf8').includes('createTestPlatform')).sort()
}
