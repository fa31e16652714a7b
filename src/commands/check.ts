/** `postern check DIR`: every problem of a fixture folder, a line each. */

import { CommandError } from '../errors.ts'
import { type FixtureProblem, findFixtureFiles, readFixtures, sourceFile } from '../fixtures/read.ts'
import type { Terminal } from './terminal.ts'

/** Resolves when the fixtures can be loaded; throws CommandError with the list otherwise. */
export async function check(folders: readonly string[], { stdout }: Terminal): Promise<void> {
  const files = findFixtureFiles(folders)
  if (files.length === 0) throw new CommandError(`there is no *.json file in ${folders.join(', ')}`)
  const { fixtures, problems } = readFixtures(files.map(sourceFile))
  if (problems.length > 0) throw new CommandError(fixtureProblemsText(problems))
  const counts = Object.entries(fixtures)
    .filter(([, items]) => items.length > 0)
    .map(([kind, items]) => `${items.length} ${kind}`)
  stdout(`${files.length} files are fine: ${counts.join(', ')}\n`)
}

export function fixtureProblemsText(problems: readonly FixtureProblem[]): string {
  const lines = problems.map(({ file, place, message }) =>
    [file, place, message].filter((part) => part !== '').join(': '),
  )
  return [...lines, `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}; nothing was loaded`].join(
    '\n',
  )
}
