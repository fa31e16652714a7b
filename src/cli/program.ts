/**
 * The commands: their names, arguments, flags and help. A command's own code is imported when it runs. One that reads
 * or changes the data folder works whether or not the server runs, because LMDB lets several processes share a store;
 * one that changes something writes a line into the audit log itself.
 */

import { Command, Help, Option } from 'commander'
import { CommandError } from '../errors.ts'
import { createLog } from '../ops/log.ts'
import { nearName } from '../schema/near-name.ts'
import { version } from '../version.ts'
import { addApiCommand } from './client/api-command.ts'
import { addClientConfigCommand } from './client/client-config.ts'
import { addConnectionCommands } from './client/connection-commands.ts'
import { type CommandContext, either, many, type RemoteCommands, remoteCommands } from './client/context.ts'
import { addLoginCommands } from './client/login.ts'
import { addNamespaceCommands } from './client/namespace-commands.ts'
import { addOrganizationCommands } from './client/organization-commands.ts'
import { addRegistryCommands } from './client/registry-commands.ts'
import { addServerActions } from './client/server-commands.ts'
import { addTokenActions } from './client/token-commands.ts'
import { addToolCommands } from './client/tool-commands.ts'
import { addViewCommands } from './client/view-commands.ts'
import { readServeConfig, type ServeFlags, unknownSettings, withServeOptions } from './config.ts'
import {
  addCallCommands,
  addDataCommands,
  addFixtureCommands,
  addServerCommands,
  addStoreCommands,
} from './data-commands.ts'
import { alsoNamed, type Context, commandsNamed, dataOption, group, keyId, onData, onNamedData } from './options.ts'

/** All commands. Parsing never exits; it throws CommanderError for wrong usage and after help, and CommandError. */
export function createProgram(context: Context): Command {
  const postern = new Command('postern')
    .description('An MCP gateway in one executable: servers, connections and scoped service tokens.')
    .version(version, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .configureOutput({
      writeOut: context.terminal.stdout,
      writeErr: context.terminal.stderr,
      getOutHelpWidth: columns,
      getErrHelpWidth: columns,
    })
    // Another name of a command goes on working, and help shows one.
    .configureHelp({
      subcommandTerm: (command) => Help.prototype.subcommandTerm(command).replace(/\|\S+/, ''),
      commandUsage: (command) => Help.prototype.commandUsage(command).replace(/\|\S+/, ''),
    })
    .exitOverride()
  postern.commandsGroup('Start:')
  addServeCommands(postern, context)
  postern.commandsGroup('Daily work, over HTTP:')
  const remotes = remoteCommands(context)
  addLoginCommands(postern, remotes, context.terminal)
  addToolCommands(postern, remotes)
  addConnectionCommands(postern, remotes)
  addServerActions(addServerCommands(postern, context), remotes)
  addNamespaceCommands(postern, remotes)
  addViewCommands(postern, remotes)
  addRegistryCommands(postern, remotes)
  addClientConfigCommand(postern, remotes)
  addOrganizationCommands(postern, remotes)
  const token = addTokenCommands(postern, context)
  addTokenActions(token, remotes)
  addApiCommand(postern, remotes)
  postern.commandsGroup('Access and records, over HTTP or on the server’s machine:')
  addKeyCommands(postern, context)
  addGrantCommands(postern, context)
  addSigningKeyCommands(postern, context)
  addCallCommands(postern, context)
  addAuditCommands(postern, context, remotes)
  postern.commandsGroup('On the server’s machine, whether or not the server runs:')
  addLoginLinkCommand(postern, context)
  postern.commandsGroup('Data, on the server’s machine:')
  addDataCommands(postern, context)
  addStoreCommands(postern, context)
  addFixtureCommands(postern, context)
  alsoNamed(postern, 'verify', ['store', 'verify'])
  alsoNamed(postern, 'check', ['fixtures', 'check'])
  postern.commandsGroup('Help:')
  addHelpCommands(postern, context)
  for (const command of postern.commands) if (groupsOfMachine.test(command.helpGroup())) sayWhere(command)
  // Last: it visits each command that was added.
  pointToHelp(postern, 'postern', context)
  return postern
}

const groupsOfMachine = /^(?:On|Data, on) the server’s machine/

/** Says in the help of a command, or of each command of a group, where it works. */
function sayWhere(command: Command): void {
  // Fixtures are checked anywhere.
  if (command.name() === 'fixtures') return
  const text = '\nWorks on the server’s machine, on its data folder or database, and not over HTTP.'
  if (command.commands.length === 0) command.addHelpText('after', text)
  for (const child of command.commands) sayWhere(child)
}

/** Ends each usage error with the command that prints the help. One line, Commander's suggestion of a flag included. */
function pointToHelp(command: Command, name: string, context: Context): void {
  command.configureOutput({
    outputError: (text, write) => {
      const given = /^error: unknown command '([^']*)'/.exec(text)?.[1]
      const meant = given === undefined ? undefined : meantBy(given, command, name)
      const meaning = meant === undefined ? '' : ` (did you mean \`${meant}\`?)`
      const problem = (given === undefined ? text : `unknown command '${given}'${meaning}`)
        .trim()
        .replace(/^error: /, '')
        .replace(/\.$/, '')
        .replaceAll('\n', ' ')
      const error = new CommandError(`${problem}; run \`${name} --help\` for usage`, 2)
      write(`${context.json ? JSON.stringify(error) : error.message}\n`)
    },
  })
  for (const child of command.commands) pointToHelp(child, `${name} ${child.name()}`, context)
}

/** Words that other programs have for the commands here. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  ...{ delete: ['rm'], remove: ['rm'], create: ['add', 'put', 'mint', 'link'], new: ['add', 'put', 'mint'] },
  ...{ ls: ['list'], show: ['get', 'list'], update: ['set', 'put'], edit: ['set', 'put'] },
}

/** The command that somebody probably meant; undefined if none has such a word. */
function meantBy(given: string, { commands }: Command, name: string): string | undefined {
  if (/^(?:start|run|up)$/.test(given) && /^postern(?: server)?$/.test(name)) return 'postern serve'
  const names = commands.map((command) => command.name())
  const word = otherWords[given]?.find((one) => names.includes(one)) ?? nearName(given, names)
  return word && `${name} ${word}`
}

/** `serve` and `dev`, which stay until a signal stops them, and `health` and `status`, which ask for one of them. */
function addServeCommands(postern: Command, { terminal, exit }: Context): void {
  const serve = onData(postern, 'serve', 'start the server, on a data folder or on a database', dataOption())
  withServeOptions(serve, { isReplica: true })
    .option('--check', 'check the settings and the fixtures, and serve nothing')
    .addHelpText('after', serveHelp)
    .action(async (flags: ServeFlags & { data: string; check?: boolean }) => {
      const config = readServeConfig(flags, process.env)
      if (flags.check === true) return (await import('./fixture-loader.ts')).checkServe(config, terminal)
      await (await import('./serve.ts')).serve(config, flags.data, terminal)
    })

  const devWords =
    'start a local server that keeps no data, with the sample or your own fixtures, and reload fixtures that change'
  withServeOptions(postern.command('dev').description(devWords), { isReplica: false })
    .addHelpText('after', devHelp)
    .action(async (flags: ServeFlags) => {
      const config = readServeConfig(flags, process.env)
      await (await import('./dev.ts')).dev(config, terminal)
    })

  const health = postern.command('health').description('ask whether postern answers; exit with code 1 if it does not')
  askingOne(health).action(async (url: string | undefined, flags) =>
    (await import('./health-command.ts')).askHealth(url, flags, terminal),
  )
  const statusWords = 'show what runs here and what is wrong; exit with code 1 if postern does not answer'
  askingOne(onData(postern, 'status', statusWords)).action(async (url: string | undefined, flags) =>
    exit(await (await import('./status-command.ts')).status(url, flags, terminal)),
  )

  // Warns about POSTERN_ variables that no flag has: a misspelt setting of a server would be ignored silently.
  postern.hook('preAction', (_, command) => {
    if (!['serve', 'dev'].includes(command.name())) return
    const log = createLog(terminal.stderr)
    const unknown = unknownSettings(process.env, variablesOf(postern))
    if (command.opts()['check'] === true && unknown.length > 0) throw new CommandError(unknown.join('\n'), 2)
    for (const warning of unknown) log.warn(warning)
  })
}

/** A command that asks a platform by its URL, or the one on this machine by its address. */
function askingOne(command: Command): Command {
  return command
    .argument('[url]', 'base URL (default: this machine, at --host and --port)')
    .addOption(
      new Option('--host <address>', 'address that postern listens on').env('POSTERN_HOST').default('127.0.0.1'),
    )
    .addOption(new Option('--port <number>', 'port that postern listens on').env('POSTERN_PORT').default('8787'))
}

const onMachine = () => import('./access-commands.ts')
const access = { onMachine, overHttp: () => import('./client/access-commands.ts') }

/** `keys`. `create` alone may make a data folder, so that a key can be made before the first start. */
function addKeyCommands(postern: Command, context: Context): void {
  const keys = group(postern, 'keys').description('create, list and revoke API keys')
  const create = onNamedData(keys, 'create', 'create an API key and print it once, on stdout')
    .option('--user <id>', 'user that the key belongs to (default: yourself, only over HTTP)')
    .option('--name <name>', 'what the key is for')
    .option('--operator', 'let the key access everything, and mint tokens for any organization')
    .addHelpText('after', '\nExample:\n  KEY=$(postern keys create --user ada --name laptop)')
  const listWords = 'list all API keys, including revoked ones; over HTTP, only operators see the keys of others'
  const list = onData(keys, 'list', listWords)
  const revoke = onData(keys, 'revoke', 'revoke an API key and every token minted with it')
  revoke.argument('<id>', 'the id of the key, as `keys list` shows it', keyId)
  either(create, context, 'createKey', access)
  either(list, context, 'listKeys', access)
  either(revoke, context, 'revokeKey', access)
}

function addLoginLinkCommand(postern: Command, { terminal }: Context): void {
  onData(postern, 'signin-link', 'create a one-time sign-in link for a browser, valid for ten minutes')
    .alias('login-link')
    .argument('<key-id>', 'the id of the key to sign in with, as `keys list` shows it', keyId)
    .action(async (keyId: string, flags) => (await onMachine()).loginLink(keyId, flags, terminal))
}

function addGrantCommands(postern: Command, context: Context): void {
  const grants = group(postern, 'grants').description('list and revoke the access that users gave to MCP clients')
  const listWords = 'list all grants that have not expired; over HTTP, only operators see the grants of others'
  const list = onData(grants, 'list', listWords)
  const revoke = onData(grants, 'revoke', 'revoke a grant and all its tokens')
  revoke.argument('<id>', 'the id of the grant, as `grants list` shows it')
  either(list, context, 'listGrantsCommand', access)
  either(revoke, context, 'revokeGrantCommand', access)
}

/** `token`. Both take `-`: an argument can be read by all users of the machine, in the list of processes. */
function addTokenCommands(postern: Command, context: Context): Command {
  const token = group(postern, 'token').description('mint, explain and revoke service tokens')
  addExplainCommand(token, context)
  const revoke = onData(token, 'revoke', 'revoke a token and every token minted with it')
  revoke.argument('<token>', 'the token, or the id (jti) of one of your tokens; - reads it from stdin')
  either(revoke, context, 'revokeTokenCommand', access)
  return token
}

/** `token explain`. On the server's machine it reads the data folder; over HTTP the server explains. */
function addExplainCommand(token: Command, context: Context): void {
  const words = 'say which constraint of a token allows or refuses the request that the flags describe'
  const explain = onData(token, 'explain', words)
    .argument('[token]', 'the token; - reads it from stdin, hidden from other users (default: the credential you use)')
    .option('--policy <file>', 'explain this policy, as if you had minted a token with it; - for stdin')
    .option(
      '-n, --namespace <name>',
      'the namespace of the request (default: POSTERN_NAMESPACE, if another flag is given)',
    )
    .option('--resource <type>', 'connections, servers, namespaces or skills (default: connections)')
    .option('--operation <kind>', 'read, write or execute (default: read; execute with --tool or --message)')
    .option('--connection <id>', 'the connection, with its real metadata')
    .addOption(many('--metadata <key=value>', 'metadata of the connection, or connectionId=ID'))
    .option('--tool <name>', 'a call of this tool, or CONNECTION.TOOL')
    .option('--args <json>', 'the arguments of that call: JSON, or a file with it; - for stdin')
    .option('--message <json>', 'a JSON-RPC request: JSON, or a file with it; - for stdin')
    .addOption(new Option('--rpc <json>', 'the same as --message').hideHelp())
    .addHelpText('after', explainHelp)
  either(explain, context, 'explainToken', {
    onMachine: () => import('./token-explain.ts'),
    overHttp: () => import('./client/explain-command.ts'),
  })
}

/** `audit`. `verify` takes files in place of the data folder, because old ones are usually kept elsewhere. */
function addAuditCommands(postern: Command, context: Context, { remote }: RemoteCommands): void {
  const audit = group(postern, 'audit').description('read and check the audit log')
  remote(audit, 'list', 'print the last 100 entries as JSON lines, over HTTP (operators only)')
    .option('--since <duration>', 'only entries written within this time, like 1h')
    .option('--event <event>', 'only entries of this event, like key.created; `postern docs audit` lists them')
    .run(async (one: CommandContext<{ since?: string; event?: string }>) =>
      (await import('./client/record-commands.ts')).listAudit(one, new Date()),
    )
  const verify = audit
    .command('verify')
    .argument(
      '[file...]',
      'files of one or several logs, oldest first; - for stdin (default: audit.jsonl in the data folder)',
    )
    .description('check that no line was changed, removed or inserted')
    .option('--hash <hash>', 'also check that the entry with this hash, from an earlier check, still exists')
    .addOption(dataOption('data folder'))
    .addHelpText('after', auditHelp)
  // Files are on this machine, and the login does not matter.
  verify.hook('preAction', () => {
    if (verify.args.length === 0) return
    if (verify.getOptionValueSource('url') === 'cli') throw new CommandError('name files or --url, not both', 2)
    verify.setOptionValueWithSource('data', verify.opts()['data'], 'cli')
  })
  either(verify, context, 'verifyAudit', {
    onMachine: () => import('./audit.ts'),
    overHttp: () => import('./client/record-commands.ts'),
  })
}

/** `signing-key`. Rotating is routine and refuses no token; revoking is for a leak and refuses many. */
function addSigningKeyCommands(postern: Command, context: Context): void {
  const signingKey = group(postern, 'signing-key').description('list, rotate and revoke the keys that sign tokens')
  const list = onData(signingKey, 'list', 'list the keys that are published, and what each is for')
  const next = 'sign with the next key; the old one is accepted until its last token expires'
  const rotate = onData(signingKey, 'rotate', next).addHelpText('after', rotateHelp)
  either(list, context, 'listSigningKeys', access)
  either(rotate, context, 'rotateSigningKeys', access)
  const revoke = onData(signingKey, 'revoke', 'revoke a signing key and every token that it signed')
    .argument('<kid>', 'the id of the key, as `signing-key list` shows it')
    // A key id may begin with a dash, which would look like an option.
    .allowUnknownOption()
    .action(async (kid: string, flags) => (await onMachine()).revokeSigningKey(kid, flags, context.terminal))
  sayWhere(revoke)
}

/** `version`, `completions` and `help`, which know the commands added before them. */
function addHelpCommands(postern: Command, { terminal }: Context): void {
  postern
    .command('version')
    .description('print the version')
    .action(() => terminal.stdout(`${version}\n`))
  postern
    .command('docs')
    .argument('[page]', 'the page, like policy (default: the list of pages)')
    .description('print a page of the documentation that postern serves at /docs')
    .action(async (page: string | undefined) => (await import('./docs-command.ts')).printDocs(page, terminal))
  postern
    .command('completions')
    .alias('completion')
    .argument('<shell>', 'bash, zsh or fish')
    .description('print the completion script of a shell')
    .addHelpText('after', completionsHelp)
    .action(async (shell: string) => (await import('./completions.ts')).completions(postern, shell, terminal))

  postern
    .command('help')
    .argument('[command...]', 'the command, like: keys create')
    .description('print the help of a command')
    .action((names: string[]) => {
      const path = commandsNamed(names, postern)
      if (path.length < names.length)
        throw new CommandError(`unknown command '${names.join(' ')}'; run \`postern --help\` for usage`, 2)
      const last = path.at(-1) ?? postern
      last.outputHelp()
    })
}

/** Names of environment variables of all flags, subcommands included. */
function variablesOf({ options, commands }: Command): string[] {
  const own = options.flatMap(({ envVar }) => envVar ?? [])
  return [...own, ...commands.flatMap(variablesOf)]
}

/** Width of the help text. COLUMNS counts too, for output into a pager. */
function columns(): number {
  const asked = Number(process.env['COLUMNS'])
  return asked > 0 ? asked : (process.stdout.columns ?? 80)
}

const serveHelp = `
The first start prints an operator key, unless POSTERN_API_KEY (at least 32 characters) supplies one.
Logs are JSON lines on stderr. On SIGINT or SIGTERM, postern finishes the requests in flight, and exits;
on a second signal, it exits at once. SIGHUP reopens the logs and reloads fixtures that have changed.

Example:
  postern serve --data ./postern-data --fixtures ./fixtures --base-url https://mcp.example.com`

const devHelp = `
Examples:
  postern dev
  postern dev --fixtures ./fixtures --port 0

Connections may point to this machine, so that you can try a server under development.`

const explainHelp = `
Examples:
  echo "$TOKEN" | postern token explain - -n northwind --tool crm.find_account
  postern token explain --policy policy.json -n northwind --metadata team=store-ops

The exit code is 1 if the described request is refused.`

const auditHelp = `
Examples:
  postern audit verify audit.jsonl.2 audit.jsonl.1 audit.jsonl
  zcat -f audit.jsonl.2.gz audit.jsonl.1 audit.jsonl | postern audit verify -`

const rotateHelp = `
postern publishes a key before the key signs (next), then signs with it (active), and then accepts its tokens for a
day (retired), so no valid token is refused. Verifiers may cache the list of keys for five minutes: wait that long
before you rotate again.`

const completionsHelp = `
Examples:
  source <(postern completions bash)
  postern completions zsh > "\${fpath[1]}/_postern"
  postern completions fish > ~/.config/fish/completions/postern.fish`
