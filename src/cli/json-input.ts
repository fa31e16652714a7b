/** JSON that a user gives, in a file or an argument: read as strictly as the platform reads a body. */

import { existsSync, readFileSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { jsonDepthMax } from '../limits.ts'
import { problemText } from '../schema/check.ts'
import { readJson } from '../schema/json.ts'

/** The value in a JSON file. `-` is stdin. Throws CommandError. */
export function readJsonFile(file: string): unknown {
  if (file !== '-' && !existsSync(file)) throw new CommandError(`${file}: no such file`)
  return parseJson(readFileSync(file === '-' ? 0 : file, 'utf8'), file === '-' ? 'stdin' : file)
}

/** `what`: what the text is, in errors. Throws CommandError for names given twice and numbers that would change, too. */
export function parseJson(text: string, what: string): unknown {
  const read = readJson(text, { depthMax: jsonDepthMax, numbers: 'exact' })
  if ('problem' in read) throw new CommandError(`${what}: ${problemText(read.problem)}`)
  return read.value
}
