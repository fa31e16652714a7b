/** A question before what cannot be undone. */

import { createInterface } from 'node:readline/promises'
import { CommandError } from '../../errors.ts'
import type { CommandContext } from './api-client.ts'

/** Asks on a terminal; elsewhere `--yes` must have been given. Throws CommandError. */
export async function confirmDeletion(question: string, { flags }: CommandContext): Promise<void> {
  if (flags.yes === true) return
  if (!process.stdin.isTTY) throw new CommandError('this cannot be undone: confirm it with --yes', 2)
  const reader = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await reader.question(`${question} [y/N] `)
  reader.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError('nothing was deleted')
}
