/** `postern check DIR`: every problem of a fixture folder, a line each. */

import { CommandError } from '../errors.ts'
import { type FixtureProblem, findFixtureFiles, readFixtures, sourceFile } from '../fixtures/read.ts'
import { printable } from '../printable.ts'
import type { Terminal } from './terminal.ts'

/** Resolves when the fixtures can be loaded, with advice where a mock would not do what is meant; throws CommandError with the list of problems otherwise. */
export async function check(folders: readonly string[], { stdout, stderr }: Terminal): Promise<void> {
  const files = findFixtureFiles(folders)
  const { fixtures, problems } = readFixtures(files.map(sourceFile))
  if (problems.length > 0) throw new CommandError(fixtureProblemsText(problems))
  const counts = Object.entries(fixtures)
    .filter(([, items]) => items.length > 0)
    .map(([kind, items]) => counted(items.length, kind.replace(/s$/, '')))
  stdout(`Fine: ${counted(files.length, 'file')} with ${counts.join(', ') || 'nothing in it'}\n`)
  // Serving knows this file too, and need not read the checker of schemas at its start.
  const { mockAdvice } = await import('../mocks/advice.ts')
  const advice = mockAdvice(fixtures.servers, fixtures.mocks)
  if (advice.length > 0) stderr(`But mocks would stumble here:\n${advice.map((line) => `  ${line}\n`).join('')}`)
}

export function fixtureProblemsText(problems: readonly FixtureProblem[]): string {
  const lines = problems.map(({ file, place, message }) =>
    printable([file, place, message].filter((part) => part !== '').join(': ')),
  )
  return [...lines, `${counted(problems.length, 'problem')}: these fixtures are not loaded`].join('\n')
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
