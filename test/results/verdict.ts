/** What the results of a run say: which threats are shown to be stood against, and what was skipped for which reason. */

import { isHere, needOf } from '../support/needs.ts'
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

export interface Verdict {
  /** What must be mended, a line each. */
  readonly wrong: readonly string[]
  /** What could not be run here, a line each, with the reason. */
  readonly skipped: readonly string[]
  /** Threats that a skipped test would have shown, a line each. */
  readonly notLookedAt: readonly string[]
}

/** `canRun` tells of a title whose test was skipped why that is, or that it could have been run. */
export function verdictOf(threats: readonly Threat[], results: readonly Result[], reasonOf = reasonHere): Verdict {
  const wrong: string[] = []
  const skipped: string[] = []
  const notLookedAt: string[] = []
  for (const { file, title, reason = reasonOf(title), outcome } of results) {
    if (outcome === 'failed') wrong.push(`${file}: ${title}: failed`)
    if (outcome !== 'skipped') continue
    if (reason === undefined) wrong.push(`${file}: ${title}: was skipped, and could have been run`)
    else skipped.push(`${file}: ${title}: ${reason}`)
  }
  for (const { row, threat, tests } of threats) {
    for (const named of tests) {
      const found = resultsOf(named, results)
      const where = `${row} ${threat}: "${named}"`
      if (found.length === 0) wrong.push(`${where} did not run`)
      else if (found.length > 1 && !named.includes('*')) wrong.push(`${where} is the title of ${found.length} tests`)
      else if (found.some(({ outcome }) => outcome === 'failed')) wrong.push(`${where} failed`)
      else if (found.some(({ outcome }) => outcome === 'skipped')) notLookedAt.push(where)
    }
  }
  return { wrong, skipped, notLookedAt }
}

function resultsOf(named: string, results: readonly Result[]): Result[] {
  const [file = '', title = ''] = named.split(/: ([^]*)/)
  const source = title.split('*').map(RegExp.escape).join('[^]*')
  const pattern = new RegExp(`(?:^| > )${source}$`)
  return results.filter((one) => one.file === file && pattern.test(one.title))
}

function reasonHere(title: string): string | undefined {
  const need = needOf(title)
  return need === undefined || isHere(need) ? undefined : `${need} is not here`
}
