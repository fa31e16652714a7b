/** The fast tests in process: whether they pass as things are, and which of them run a line. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mutant } from './sites.ts'
import type { Tree } from './tree.ts'

/** Below `test/`. The rest starts the executable, reads the source as text, or takes its time. */
const folders = [
  'api',
  'auth',
  'fairness',
  'fast-lane',
  'features',
  'http',
  'maintenance/seed',
  'model',
  'ops',
  'policy',
  'schema',
  'storage',
  'upstream',
]
/** The schemas that are made of the core, and published. */
const published = ['test/tools/generate.test.ts']
const inProcess = ['--test-name-pattern', String.raw`^(?!.*(executable|a load that is cut off|\.md is what))`]

interface Suite {
  readonly test: string
  readonly milliseconds: number
  /** The lines that it runs, by file. */
  readonly lines: ReadonlyMap<string, ReadonlySet<number>>
}

export interface Verdict {
  /** The suite that noticed, undefined when none did. */
  readonly by: string | undefined
  readonly tooLong: boolean
  readonly asked: number
}

export interface Suites {
  readonly all: readonly Suite[]
  /** Asks those that run the mutant's lines, the nearest first, until one notices. */
  notice(mutant: Mutant): Promise<Verdict>
}

/** Throws where the tests do not pass on the program as it is: what they then notice says nothing. */
export async function openSuites(tree: Tree): Promise<Suites> {
  const tests = folders
    .flatMap((folder) =>
      readdirSync(join(tree.folder, 'test', folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `test/${folder}/${name}`,
      ),
    )
    .filter((name) => name.endsWith('.test.ts'))
    .concat(published)
    .sort()
  const all: Suite[] = []
  for (const test of tests) {
    const coverage = ['--coverage', '--coverage-reporter=lcov', `--coverage-dir=${tree.folder}/tmp/coverage`]
    const { outcome, milliseconds, output } = await tree.ask([test], { more: [...inProcess, ...coverage] })
    if (outcome !== 'passed') throw new Error(`${test} does not pass on the program as it is:\n${output}`)
    all.push({ test, milliseconds, lines: linesIn(readFileSync(join(tree.folder, 'tmp/coverage/lcov.info'), 'utf8')) })
  }
  /** How often a suite has noticed something in a file: it is asked first about the next. */
  const noticed = new Map<string, number>()

  return {
    all,
    async notice(mutant) {
      const { file } = mutant
      const key = ({ test }: Suite) => `${file} ${test}`
      const rank = (suite: Suite) =>
        nearness(file, suite.test) * 10 + (noticed.get(key(suite)) ?? 0) - suite.milliseconds / 1000
      const running = all.filter((suite) => runs(suite, mutant))
      // The runtime counts some lines as not run that are: then those of the same folder are asked.
      const near = all.filter(({ test, lines }) => nearness(file, test) > 0 && lines.has(file))
      const chosen = (running.length > 0 ? running : near).sort((a, b) => rank(b) - rank(a))
      return tree.with(
        file,
        (text) => text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end),
        async () => {
          let asked = 0
          for (const suite of chosen) {
            asked += 1
            // What took so long before takes no longer now, unless something waits for ever.
            const testTimeoutMs = suite.milliseconds * 2 + 5000
            const timeoutMs = suite.milliseconds * 4 + 8000
            const { outcome } = await tree.ask([suite.test], { more: inProcess, testTimeoutMs, timeoutMs })
            if (outcome === 'passed') continue
            noticed.set(key(suite), (noticed.get(key(suite)) ?? 0) + 1)
            return { by: suite.test, tooLong: outcome === 'too long', asked }
          }
          return { by: undefined, tooLong: false, asked }
        },
      )
    },
  }
}

/** 2 for the test of the very file, 1 for one of its folder. */
function nearness(file: string, test: string): number {
  const mirrored = file.replace(/^src/, 'test').replace(/\.ts$/, '')
  const folder = mirrored.slice(0, mirrored.lastIndexOf('/') + 1)
  return test === `${mirrored}.test.ts` ? 2 : test.startsWith(folder) ? 1 : 0
}

/** Some line of the statement up to the change counts: what is reported of a statement in several lines is rough. */
function runs({ lines }: Suite, { file, statementLine, lastLine }: Mutant): boolean {
  const ran = lines.get(file)
  if (ran === undefined) return false
  for (let line = statementLine; line <= lastLine; line += 1) if (ran.has(line)) return true
  return false
}

function linesIn(lcov: string): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>()
  let lines = new Set<number>()
  for (const row of lcov.split('\n')) {
    if (row.startsWith('SF:')) {
      lines = new Set()
      found.set(row.slice('SF:'.length), lines)
    }
    const [, line, times] = /^DA:(\d+),(\d+)/.exec(row) ?? []
    if (Number(times) > 0) lines.add(Number(line))
  }
  return found
}
