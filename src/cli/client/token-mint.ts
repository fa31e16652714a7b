/** `postern token mint`. */

import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { operationKinds, resourceTypes } from '../../model/constraint.ts'
import { CreateTokenResponse } from '../../model/token.ts'
import { readJsonFile, readPairs } from '../json-input.ts'
import { type CommandContext, many, type RemoteCommands } from './context.ts'
import { tellMistakes } from './policy-commands.ts'

type Rule = 'namespace' | 'resource' | 'operation' | 'connection' | 'metadata' | 'rpc'

interface MintFlags extends Readonly<Partial<Record<Rule, readonly string[]>>> {
  readonly policy?: string
  readonly organization?: string
  readonly ttl?: string
}

export function addMintCommand(token: Command, { remote }: RemoteCommands): void {
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
