/** Input that a user gives in a file or an argument. JSON is read as strictly as the platform reads a body. */

import { existsSync, readFileSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { jsonDepthMax } from '../limits.ts'
import { problemText, type Validator } from '../schema/check.ts'
import { readJsonBytes, readJson as readStrictly } from '../schema/json.ts'

/** The bytes of a file. `-` is stdin. Throws CommandError. */
export function readInput(file: string): Buffer {
  if (file !== '-' && !existsSync(file)) throw new CommandError(`${file}: no such file`)
  try {
    return readFileSync(file === '-' ? 0 : file)
  } catch (error) {
    throw new CommandError(`${file}: cannot be read: ${(error as Error).message}`, 1, { cause: error })
  }
}

/** A token: the text itself, or `-` for stdin. Arguments of a process are visible to every user of the machine. */
export function readToken(given: string): string {
  return (given === '-' ? readInput('-').toString() : given).trim()
}

export const noToken = 'this is neither a service token of postern nor a token id (tok_…), as `postern whoami` shows it'

/** Said of a revoked token. There is no list of tokens, so a mistyped id is revoked, too. */
export function revokedToken(jti: string, isById: boolean): string {
  const check = isById ? '. Check the id: postern keeps no list of tokens, so it takes a wrong id, too' : ''
  return `${jti} is revoked, and every token minted with it${check}`
}

/** The value in a JSON file. `-` is stdin. Throws CommandError as `parseJson` does. */
export function readJsonFile(file: string, depthMax = jsonDepthMax): unknown {
  return valueIn(readJsonBytes(readInput(file), { depthMax, numbers: 'exact' }), file === '-' ? 'stdin' : file)
}

/** The value of a flag: JSON itself, or a file with it; `-` is stdin. Throws CommandError as `parseJson` does. */
export function readJson(given: string, flag: string, depthMax = jsonDepthMax): unknown {
  return /^\s*[{[]/.test(given) ? parseJson(given, flag, depthMax) : readJsonFile(given, depthMax)
}

/** `what`: the text, in errors. Throws CommandError 2, also for names given twice and numbers that would change. */
export function parseJson(text: string, what: string, depthMax = jsonDepthMax): unknown {
  return valueIn(readStrictly(text, { depthMax, numbers: 'exact' }), what, 2)
}

function valueIn(read: ReturnType<typeof readStrictly>, what: string, exitCode: 1 | 2 = 1): unknown {
  if ('problem' in read) throw new CommandError(`${what}: ${problemText(read.problem)}`, exitCode)
  return read.value
}

/** `KEY=VALUE` arguments. Throws CommandError 2 for one that is not a pair. `form`: what it should be, with its flag. */
export function readPairs(given: readonly string[], form = 'KEY=VALUE'): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new CommandError(`${pair}: must be ${form}`, 2)
      return [pair.slice(0, equals), pair.slice(equals + 1)]
    }),
  )
}

/** Throws CommandError 2 for a flag whose value does not have the shape. */
export function requireShape(flag: string, { problems }: Pick<Validator<unknown>, 'problems'>, value: unknown): void {
  const [problem] = problems(value, 1)
  if (problem !== undefined) throw new CommandError(`${flag}: ${problemText(problem)}`, 2)
}
