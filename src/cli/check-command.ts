/** `postern fixtures check DIR`: prints every problem of a fixture folder, one a line. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'
import { type FixtureProblem, fixtureProblemLine } from '../maintenance/seed/problem.ts'
import { type Fixtures, readFixtures } from '../maintenance/seed/read-fixtures.ts'
import { findFixtureFiles, sourceFile } from '../maintenance/seed/source-files.ts'
import { oneLine } from '../ops/escape-control.ts'
import { countText } from './count-text.ts'
import type { Terminal } from './terminal.ts'

/** Resolves with fixtures that load and whose mocks work. Throws CommandError for problems, or warnings if `strict`. */
export async function check(
  folders: readonly string[],
  { strict = false }: { readonly strict?: boolean },
  { stdout, stderr }: Terminal,
): Promise<Fixtures> {
  const { fixtures, files, wrong, warnings } = await adviceOn(folders)
  if (wrong.length > 0 || (strict && warnings.length > 0)) {
    const lines = strict ? [...wrong, ...warnings] : wrong
    if (!strict) stderr(warningLines(warnings))
    throw new CommandError(
      `${lines.join('\n')}\n${countText(lines.length, 'problem')}: the fixtures can be loaded, but these should be fixed`,
    )
  }
  stderr(warningLines(warnings))
  const { organizations, namespaces, views, apiKeys, servers, connections, mocks } = fixtures
  const counts = Object.entries({ organizations, namespaces, views, apiKeys, servers, connections, mocks })
    .filter(([, { length }]) => length > 0)
    .map(([kind, { length }]) => countText(length, kind.replace(/s$/, '')))
  stdout(`Fine: ${countText(files, 'file')} with ${counts.join(', ') || 'nothing in it'}\n`)
  return fixtures
}

/** Fixtures that can be loaded, with what does not work, and probable mistakes. Throws CommandError for others. */
export async function adviceOn(folders: readonly string[]) {
  const files = findFixtureFiles(folders)
  const sources = files.map(sourceFile)
  const { fixtures, problems } = await readFixtures(sources)
  if (problems.length > 0) throw new CommandError(fixtureProblemsText(problems))
  // `serve` imports this file too and does not need the checker of schemas.
  const { lintMocks } = await import('../features/mocks/warnings.ts')
  const { fixtureWarnings, looksIgnored } = await import('../maintenance/seed/fixture-warnings.ts')
  const advice = lintMocks(fixtures)
  const ofMocks = (wanted: boolean) => advice.filter(({ isWrong }) => isWrong === wanted).map(({ line }) => line)
  const neighbours = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  const ignored = neighbours
    .filter(looksIgnored)
    .map((file) => `${file}: is not read: fixtures are *.json files, and not in subfolders`)
  const warnings = [...ignored, ...fixtureWarnings(sources).map(fixtureProblemLine), ...ofMocks(false)].map(oneLine)
  return { fixtures, files: files.length, wrong: ofMocks(true).map(oneLine), warnings }
}

function warningLines(warnings: readonly string[]): string {
  return warnings.map((line) => `warning: ${line}\n`).join('')
}

/** The problems, one a line, and their number. Control characters are escaped: fixtures may be someone else's. */
export function fixtureProblemsText(problems: readonly FixtureProblem[]): string {
  return [
    ...problems.map(fixtureProblemLine).map(oneLine),
    `${countText(problems.length, 'problem')}: these fixtures are not loaded`,
  ].join('\n')
}
