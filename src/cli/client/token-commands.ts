/** `postern token mint`, `lint`, `diff` and `suggest`: a token, and questions about policies. */

import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { rpcDepthMax } from '../../limits.ts'
import { operationKinds, resourceTypes } from '../../model/constraint.ts'
import { Diff, type Finding, LintAnswer, Suggestion, suggestedDaysMax } from '../../model/explain.ts'
import { CreateTokenResponse } from '../../model/token.ts'
import { parseJson, readInput, readJsonFile, readPairs } from '../json-input.ts'
import { type CommandContext, many, type RemoteCommands } from './context.ts'

type Rule = 'namespace' | 'resource' | 'operation' | 'connection' | 'metadata' | 'rpc'

interface MintFlags extends Readonly<Partial<Record<Rule, readonly string[]>>> {
  readonly policy?: string
  readonly organization?: string
  readonly ttl?: string
}

const fileHelp = 'file with a policy as JSON, or with a token; - for stdin'

export function addTokenActions(token: Command, { remote }: RemoteCommands): void {
  remote(token, 'mint', 'mint a service token and print it')
    .option('--policy <file>', 'file with a policy as JSON; - for stdin')
    .addOption(many('-n, --namespace <name>', 'only this namespace'))
    .addOption(many('--resource <type>', `only ${resourceTypes.join(', ')}`, resourceTypes))
    .addOption(many('--operation <kind>', `only ${operationKinds.join(', ')}`, operationKinds))
    .addOption(many('--connection <id>', 'only this connection'))
    .addOption(many('--metadata <key=value>', 'only connections with this metadata'))
    .addOption(many('--rpc <path=pattern>', 'only MCP requests that match, like params.name=^get_'))
    .option('--ttl <duration>', 'lifetime of the token, like 30m (default: 1h)')
    .option('--organization <id>', 'organization that the token acts for')
    .addHelpText('after', mintHelp)
    .run(mintToken)
  remote(token, 'lint', 'report mistakes in a policy, and parts of it that restrict nothing')
    .argument('<file>', fileHelp)
    .option('--strict', 'exit with code 1 for a warning, too')
    .run(lint)
  const diffWords = 'find a request that a new policy allows and an old one refuses; exit with code 1 if there is one'
  remote(token, 'diff', diffWords)
    .argument('<old>', fileHelp)
    .argument('<new>', 'file with the new policy as JSON, or with a token; - for stdin')
    .run(diff)
  remote(token, 'suggest', 'print a policy that allows what was called, made from the record of calls')
    .option('--days <number>', 'calls of the last days, up to 30 (default: 7)')
    .option('-n, --namespace <name>', 'only calls in this namespace')
    .option(
      '--token-file <file>',
      'only calls with the token in this file, and with tokens minted with that token; - for stdin',
    )
    .run(suggest)
}

const mintHelp = `
Examples:
  TOKEN=$(postern token mint -n acme --operation execute --rpc 'params.name=^get_' --ttl 30m)
  postern token mint --policy policy.json`

/** Prints the token alone, so that a script can keep it. */
async function mintToken({ flags, request, say, stderr }: CommandContext<MintFlags>): Promise<void> {
  const { policy: file, organization, namespace, resource, operation, connection, rpc, ttl } = flags
  const pairs = flags.metadata && readPairs(flags.metadata, '--metadata KEY=VALUE')
  const metadata = connection?.map((connectionId) => ({ ...pairs, connectionId })) ?? pairs
  const rules = { metadata, rpcReqMatch: rpc && readPairs(rpc, '--rpc PATH=PATTERN') }
  const constraint = { namespaces: namespace, resources: resource, operations: operation, ...rules, ttl }
  const whole = file === undefined ? [] : [readJsonFile(file)].flat()
  const isEmpty = Object.values(constraint).every((field) => field === undefined)
  const policy = isEmpty ? whole : [...whole, constraint]
  // An empty list in a file is no mistake that may leave a token unrestricted: the server refuses it.
  const isGiven = file !== undefined || policy.length > 0
  const body = { policy: isGiven ? policy : undefined, organizationId: organization }
  for (const path of Object.keys(rules.rpcReqMatch ?? {}))
    if (!/^(?:method$|params\.)/.test(path))
      stderr(
        `warning: --rpc ${path}: no MCP request has this field at the top: did you mean params.${path.replace(/^.*\./, '')}?\n`,
      )
  const minted = await request('POST', '/tokens', { body, reads: CreateTokenResponse }).catch((error) => {
    if (!(error instanceof CommandError)) throw error
    // As it was given.
    const own = `policy[${whole.length}].`
    throw error.with(error.message.replace(`${own}ttl`, '--ttl').replace(`${own}rpcReqMatch[`, '--rpc ['))
  })
  say(minted, minted.token)
  if (rpc !== undefined && operation === undefined && file === undefined)
    stderr(
      'warning: --rpc restricts only MCP requests: without --operation execute, the token may also change connections\n',
    )
  if (isGiven) await tellMistakes({ request, stderr }, { token: minted.token }, 'token')
  if (!isGiven && organization === undefined)
    stderr(
      'This token may do all that your credential may: restrict it with --namespace, --connection, --operation and --rpc.\n',
    )
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
