/** What the results of a run say: what failed, what was skipped for which reason, and which threats nothing looked at. */

import { missingFor } from '../support/needs.ts'
import type { Result } from './junit.ts'

export interface Threat {
  readonly row: string
  readonly threat: string
  /**
   * Each `FILE: TITLE`, or the end of a title from one of its parts on, of one test. With `*` for anything, of each of
   * several.
   */
  readonly tests: readonly string[]
}

/** A stage that has ended. */
export interface Ended {
  readonly name: string
  readonly code: number
  /** Of its tests. A stage without any is a test itself. */
  readonly results?: readonly Result[]
}

export interface Verdict {
  readonly passed: number
  /** A line each. */
  readonly failed: readonly string[]
  /** How many tests could not be run here, by the reason. */
  readonly skipped: ReadonlyMap<string, number>
  /** The row of a threat for each of its tests that was skipped. */
  readonly notLookedAt: readonly string[]
}

/** `reasonOf` tells of a title whose test was skipped why that is; undefined where it could have been run. */
export function verdictOf(threats: readonly Threat[], stages: readonly Ended[], reasonOf = reasonHere): Verdict {
  let passed = 0
  const failed: string[] = []
  const skipped = new Map<string, number>()
  for (const { name, code, results } of stages) {
    const failedBefore = failed.length
    for (const { file, title, outcome, reason = reasonOf(title) } of results ?? []) {
      if (outcome === 'passed') passed += 1
      else if (outcome === 'failed') failed.push(`${name}: ${file}: ${title}`)
      else if (reason === undefined) failed.push(`${name}: ${file}: ${title}: was skipped, and could have been run`)
      else skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
    }
    if (results === undefined && code === 0) passed += 1
    else if (results?.length === 0) failed.push(`${name}: ended with ${code}, and no test ran`)
    else if (code !== 0 && failed.length === failedBefore)
      failed.push(`${name}: ended with ${code}; its output says why`)
  }
  const { wrong, notLookedAt } = shown(threats, stages)
  return { passed, failed: [...failed, ...wrong], skipped, notLookedAt }
}

/** A test that failed is not told again. Of stages that run the same file, the first counts. */
function shown(threats: readonly Threat[], stages: readonly Ended[]) {
  const wrong: string[] = []
  const notLookedAt: string[] = []
  // Each threat would be told whose tests the stage has.
  if (stages.some(({ results }) => results?.length === 0)) return { wrong, notLookedAt }
  const results = new Map<string, readonly Result[]>()
  for (const { results: all = [] } of stages) {
    for (const [file, some] of Map.groupBy(all, (one) => one.file)) if (!results.has(file)) results.set(file, some)
  }
  for (const { row, threat, tests } of threats) {
    for (const named of tests) {
      const found = resultsOf(named, results)
      const where = `${row} ${threat}: "${named}"`
      if (found.length === 0) wrong.push(`${where} did not run`)
      else if (found.length > 1 && !named.includes('*')) wrong.push(`${where} is the title of ${found.length} tests`)
      else if (found.some(({ outcome }) => outcome === 'skipped')) notLookedAt.push(row)
    }
  }
  return { wrong, notLookedAt }
}

function resultsOf(named: string, results: ReadonlyMap<string, readonly Result[]>): Result[] {
  const [file = '', title = ''] = named.split(/: ([^]*)/)
  const source = title.split('*').map(RegExp.escape).join('[^]*')
  const pattern = new RegExp(`(?:^| > )${source}$`)
  return (results.get(file) ?? []).filter((one) => pattern.test(one.title))
}

function reasonHere(title: string): string | undefined {
  const need = missingFor(title)
  return need && `${need} is not here`
}

/** The end of the output. Its last line has the numbers. */
export function verdictText({ passed, failed, skipped, notLookedAt }: Verdict): string {
  const all = [...skipped.values()].reduce((sum, count) => sum + count, 0)
  return [
    '',
    ...[...skipped].sort(([, a], [, b]) => b - a).map(([reason, count]) => `skipped: ${count}, because ${reason}`),
    ...(notLookedAt.length === 0
      ? []
      : [`threats with a test that was skipped: ${[...new Set(notLookedAt)].join(', ')}`]),
    ...failed.map((line) => `failed: ${line}`),
    `${passed} passed, ${failed.length} failed${all === 0 ? '' : `, ${all} skipped`}`,
  ].join('\n')
}
