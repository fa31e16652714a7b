/** `postern token lint`, `diff` and `suggest`: questions about policies, which the platform answers. */

import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { rpcDepthMax } from '../../limits.ts'
import { Diff, type Finding, LintAnswer, Suggestion, suggestedDaysMax } from '../../model/explain.ts'
import { parseJson, readInput } from '../json-input.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

const fileHelp = 'file with a policy as JSON, or with a token; - for stdin'

export function addPolicyCommands(token: Command, { remote }: RemoteCommands): void {
  remote(token, 'lint', 'report mistakes in a policy, and parts of it that restrict nothing')
    .argument('<file>', fileHelp)
    .option('--strict', 'exit with code 1 for a warning, too')
    .run(lint)
  const diffWords = 'find a request that a new policy allows and an old one refuses; exit with code 1 if there is one'
  remote(token, 'diff', diffWords).argument('<old>', fileHelp).argument('<new>', 'the same for the new one').run(diff)
  remote(token, 'suggest', 'print a policy that allows what was called, made from the record of calls')
    .option('--days <number>', 'calls of the last days, up to 30 (default: 7)')
    .option('-n, --namespace <name>', 'only calls in this namespace')
    .option('--token-file <file>', 'only calls of the token in this file, and of those minted with it; - for stdin')
    .run(suggest)
}

/** The policy or the token in a file. Throws CommandError as `readInput` and `parseJson`. */
function readSubject(file: string): { readonly policy: unknown } | { readonly token: string } {
  const text = readInput(file).toString().trim()
  if (!/^[[{]/.test(text)) return { token: text }
  return { policy: [parseJson(text, file === '-' ? 'stdin' : file, rpcDepthMax)].flat() }
}

function findingLine({ severity, code, place, other, words, examples }: Finding): string {
  const beside = other === null ? '' : ` (${other})`
  const some = examples.length === 0 ? '' : `: ${examples.join(', ')}`
  return `${severity.padEnd(7)} ${code} at ${place}${beside}: ${words}${some}`
}

/** Findings of a policy with which a token or a view cannot be used as it was meant. */
const mistakeCodes: ReadonlySet<string> = new Set(['contradiction', 'empty-scope', 'handshake-refused', 'unknown-tool'])

/** Prints the mistakes in the policy of what was just made, which is there all the same. */
export async function tellMistakes(
  { request, stderr }: Pick<CommandContext, 'request' | 'stderr'>,
  subject: object,
  made: string,
): Promise<void> {
  try {
    const { findings } = await request('POST', '/tokens/lint', { body: subject, reads: LintAnswer })
    for (const one of findings) if (mistakeCodes.has(one.code)) stderr(`${findingLine(one)}\n`)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    stderr(`could not check the ${made} for mistakes: ${error.message}\n`)
  }
}

/** Resolves with the exit code: 1 for an error, with `--strict` for a warning, too. */
async function lint({ flags, request, say, stderr }: CommandContext<{ strict?: boolean }>, file: string) {
  const linted = await request('POST', '/tokens/lint', { body: readSubject(file), reads: LintAnswer })
  const { findings, searched } = linted
  const lines = findings.map(findingLine)
  if (lines.length === 0) lines.push('no findings')
  for (const line of flags.json === true ? [''] : lines) say(linted, line)
  if (!searched.complete) stderr('the search did not finish, so there may be more findings\n')
  const isBad = (severity: string) => severity === 'error' || (flags.strict === true && severity === 'warning')
  return findings.some(({ severity }) => isBad(severity)) ? 1 : 0
}

/** Resolves with the exit code: 1 for a wider policy. */
async function diff({ request, say }: CommandContext, old: string, newer: string) {
  if (old === '-' && newer === '-') throw new CommandError('only one of the files can be -, stdin', 2)
  const body = { old: readSubject(old), new: readSubject(newer) }
  const diffed = await request('POST', '/tokens/diff', { body, reads: Diff })
  const { verdict, refusedBy, words } = diffed
  say(diffed, refusedBy === null ? words : `${words} The old one refuses it by ${refusedBy}.`)
  return verdict === 'wider' ? 1 : 0
}

interface SuggestFlags {
  readonly days?: string
  readonly namespace?: string
  readonly tokenFile?: string
}

/** Prints the policy alone, so that a script can mint with it. Resolves with the exit code: 1 without a policy. */
async function suggest({ flags, request, stdout, print, stderr }: CommandContext<SuggestFlags>) {
  const { days, namespace, tokenFile, json } = flags as SuggestFlags & { json?: boolean }
  if (days !== undefined && !(/^\d{1,2}$/.test(days) && Number(days) >= 1 && Number(days) <= suggestedDaysMax))
    throw new CommandError(`--days: must be a whole number from 1 to ${suggestedDaysMax}`, 2)
  const subject = tokenFile === undefined ? undefined : readInput(tokenFile).toString().trim()
  const body = { days: days === undefined ? undefined : Number(days), namespace, token: subject }
  const suggested = await request('POST', '/tokens/suggest', { body, reads: Suggestion })
  if (json === true) print(suggested)
  else if (suggested.policy !== null) stdout(`${JSON.stringify(suggested.policy, null, 2)}\n`)
  for (const { words } of suggested.notes) stderr(`${words}\n`)
  return suggested.policy === null ? 1 : 0
}
