/** The command line: the only reader of arguments, environment and signals. */

import { Command, CommanderError, Option } from 'commander'
import { readServeConfig, type ServeFlags, unknownSettings } from './cli/config.ts'
import { write, written } from './cli/standard-output.ts'
import { CommandError } from './errors.ts'
import {
  failuresPerSecondDefault,
  mintsPerSecondDefault,
  namespaceBytesDefault,
  namespaceConnectionsDefault,
  upstreamTimeoutDefaultSeconds,
  writesPerSecondDefault,
} from './limits.ts'
import { printableLines } from './ops/escape-control.ts'
import { createLog } from './ops/log.ts'
import { version } from './version.ts'

/** All that commands say goes through here, and no terminal acts on what names, files and arguments have in them. */
const terminal = {
  stdout: (text: string) => write('stdout', printableLines(text)),
  stderr: (text: string) => write('stderr', printableLines(text)),
}

const dataOption = (words = 'data folder, made when it is missing') =>
  new Option('--data <dir>', words).env('POSTERN_DATA').default('./postern-data')

/** Commands make a data folder only where one was named. */
const isNamed = (command: Command) => ({ isNamed: command.getOptionValueSource('data') !== 'default' })
const makingOption = () => dataOption('data folder; a new one is made where this names one')

const collect = (value: string, previous: readonly string[] = []) => [...previous, value]

function withServeOptions(command: Command): Command {
  return command
    .addOption(new Option('--host <address>', 'address to listen on').env('POSTERN_HOST').default('127.0.0.1'))
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 picks a free one').env('POSTERN_PORT').default('8787'),
    )
    .addOption(
      new Option('--fixtures <dir>', 'folder of fixtures to load; may be given again')
        .env('POSTERN_FIXTURES')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--base-url <url>',
        'what clients call this server; also the issuer of its tokens (default: http://HOST:PORT)',
      ).env('POSTERN_BASE_URL'),
    )
    .addOption(
      new Option('--cors-origin <origin>', 'a web page that may call from a browser; may be given again')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--metrics-listen <host:port>', 'serve /metrics and /ready there (default: nowhere)').env(
        'POSTERN_METRICS_LISTEN',
      ),
    )
    .addOption(
      new Option('--mint-rate <number>', 'tokens a second that one API key may mint; 0 for no limit')
        .env('POSTERN_MINT_RATE')
        .default(String(mintsPerSecondDefault)),
    )
    .addOption(
      new Option('--failure-rate <number>', 'bad credentials a second from one address; 0 for no limit')
        .env('POSTERN_FAILURE_RATE')
        .default(String(failuresPerSecondDefault)),
    )
    .addOption(
      new Option('--write-rate <number>', 'connections a second that one API key may write or delete; 0 for no limit')
        .env('POSTERN_WRITE_RATE')
        .default(String(writesPerSecondDefault)),
    )
    .addOption(
      new Option('--namespace-connections <number>', 'connections that a namespace may hold; 0 for no limit')
        .env('POSTERN_NAMESPACE_CONNECTIONS')
        .default(String(namespaceConnectionsDefault)),
    )
    .addOption(
      new Option('--namespace-bytes <number>', 'bytes of connections that a namespace may hold; 0 for no limit')
        .env('POSTERN_NAMESPACE_BYTES')
        .default(String(namespaceBytesDefault)),
    )
    .addOption(
      new Option(
        '--trusted-proxy <cidr>',
        'a proxy in front, whose X-Forwarded-For or Forwarded says where requests come from; may be given again',
      )
        .env('POSTERN_TRUSTED_PROXY')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option(
        '--allow-upstream <where>',
        'a host, HOST:PORT or CIDR of the LAN or this machine that connections may point to; may be given again',
      )
        .env('POSTERN_ALLOW_UPSTREAM')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--no-public-upstream', 'connections may point nowhere but where --allow-upstream says').env(
        'POSTERN_NO_PUBLIC_UPSTREAM',
      ),
    )
    .addOption(
      new Option(
        '--upstream-ca <file>',
        'certificates, in PEM, of private authorities that MCP servers may be certified by; may be given again',
      )
        .env('POSTERN_UPSTREAM_CA')
        .argParser(collect)
        .default([], 'none'),
    )
    .addOption(
      new Option('--upstream-timeout <duration>', 'how long an MCP server may take to begin its answer')
        .env('POSTERN_UPSTREAM_TIMEOUT')
        .default(`${upstreamTimeoutDefaultSeconds}s`),
    )
    .addOption(
      new Option(
        '--upstream-client <name>',
        'what sends requests to MCP servers: parser, or node if a later runtime breaks that one; node takes more time a call',
      )
        .env('POSTERN_UPSTREAM_CLIENT')
        .default('parser'),
    )
    .addOption(
      new Option(
        '--allow-sample-keys',
        'let the keys of the sample fixtures, which everybody has, be used on an address that is not loopback',
      ).env('POSTERN_ALLOW_SAMPLE_KEYS'),
    )
}

/** The environment's names for the flags of all commands. */
function variablesOf({ options, commands }: Command): string[] {
  const own = options.flatMap(({ envVar }) => envVar ?? [])
  return [...own, ...commands.flatMap(variablesOf)]
}

/** For help that goes to a pager too. */
function columns(): number {
  const asked = Number(process.env['COLUMNS'])
  return asked > 0 ? asked : (process.stdout.columns ?? 80)
}

function program(exit: (code: number) => void): Command {
  const postern = new Command('postern')
    .description('An MCP platform in one executable: servers, connections and scoped service tokens.')
    .version(version, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .configureOutput({
      writeOut: terminal.stdout,
      writeErr: terminal.stderr,
      getOutHelpWidth: columns,
      getErrHelpWidth: columns,
      // One line as all of ours are, a guess at what was meant with it.
      outputError: (text, write) =>
        write(
          `${text
            .trim()
            .replace(/^error: /, '')
            .replaceAll('\n', ' ')}; --help tells what there is\n`,
        ),
    })
    .exitOverride()

  withServeOptions(postern.command('serve').description('serve the platform from a data folder'))
    .addOption(dataOption())
    .addHelpText('after', serveHelp)
    .action(async (flags: ServeFlags & { data: string }) => {
      const config = readServeConfig(flags, process.env)
      const { serve } = await import('./cli/serve.ts')
      exit(await serve(config, flags.data, terminal))
    })

  withServeOptions(
    postern
      .command('dev')
      .description('serve sample or own fixtures from a temporary data folder, reloading on change'),
  )
    .addHelpText('after', devHelp)
    .action(async (flags: ServeFlags) => {
      const config = readServeConfig(flags, process.env)
      const { dev } = await import('./cli/dev.ts')
      exit(await dev(config, terminal))
    })

  postern.hook('preAction', (_, command) => {
    if (!['serve', 'dev'].includes(command.name())) return
    const log = createLog({ write: terminal.stderr, now: () => new Date() })
    for (const warning of unknownSettings(process.env, variablesOf(postern))) log.warn(warning)
  })

  const group = (name: string) => postern.command(name).helpCommand('help [command]', 'print the help of a command')

  const keys = group('keys').description('create, list and revoke API keys, while the server runs or not')
  keys
    .command('create')
    .description('make a key and print it once, alone, on stdout')
    .requiredOption('--user <id>', 'the user it belongs to')
    .option('--name <name>', 'what it is for')
    .option('--operator', 'reaches everything and may mint for any organization')
    .addOption(makingOption())
    .addHelpText('after', '\nExample:\n  KEY=$(postern keys create --user ada --name laptop)')
    .action(async (flags, command: Command) =>
      (await import('./cli/keys.ts')).createKey({ ...flags, ...isNamed(command) }, terminal),
    )
  keys
    .command('list')
    .description('list all keys, the revoked ones too')
    .addOption(dataOption('data folder'))
    .action(async (flags) => (await import('./cli/keys.ts')).listKeys(flags, terminal))
  keys
    .command('revoke')
    .argument('<id>', 'the id of the key, as `keys list` shows it')
    .description('revoke a key and every token minted with it')
    .addOption(dataOption('data folder'))
    .action(async (id: string, flags) => (await import('./cli/keys.ts')).revokeKey(id, flags, terminal))

  postern
    .command('check')
    .argument('<dir...>', 'folders of fixtures, checked as one set')
    .description('check fixtures and print every problem as file: path: what is wrong')
    .option('--strict', 'fail on warnings too: what is allowed, and hardly meant')
    .action(async (folders: string[], flags) => (await import('./cli/check.ts')).check(folders, flags, terminal))

  const token = group('token').description('look at service tokens, and revoke them')
  token
    .command('explain')
    .argument('<token>', 'the token; - reads it from stdin, where no other user of the machine sees it')
    .description("show a token's constraints in words, and which of them allow or refuse a described request")
    .option('--namespace <name>', 'the namespace of the request')
    .option('--resource <type>', 'connections, servers, namespaces or skills (default: connections)')
    .option('--operation <kind>', 'read, write or execute (default: read; execute with --rpc)')
    .addOption(new Option('--metadata <key=value>', 'a fact of the connection; may be given again').argParser(collect))
    .option('--rpc <file>', 'a JSON-RPC request to match: a file, - for stdin, or the JSON itself')
    .addOption(dataOption('data folder'))
    .addHelpText('after', explainHelp)
    .action(async (token: string, flags) =>
      exit(await (await import('./cli/token-explain.ts')).explainToken(token, flags, new Date(), terminal)),
    )
  token
    .command('revoke')
    .argument('<token>', 'the token, or its id (jti); - reads it from stdin')
    .description('revoke a token and every token minted with it')
    .addOption(dataOption('data folder'))
    .action(async (token: string, flags) =>
      (await import('./cli/token-revoke.ts')).revokeTokenCommand(token, flags, new Date(), terminal),
    )

  group('audit')
    .description('look at the audit log')
    .command('verify')
    .argument('[file...]', 'the files of the log, oldest first; - for stdin (default: audit.jsonl in the data folder)')
    .description('check that no line was changed, taken out or put in')
    .option('--hash <hash>', 'the hash of an entry, as an earlier check printed it: it must still be there')
    .addOption(dataOption('data folder'))
    .addHelpText('after', auditHelp)
    .action(async (files: string[], flags) => (await import('./cli/audit.ts')).verifyAudit(files, flags, terminal))

  postern
    .command('backup')
    .argument('<file>', 'the file to make; - for stdout')
    .description('write the whole data folder to one file, while the server runs or not')
    .addOption(dataOption('data folder'))
    .action(async (file: string, flags) => {
      if (file === '-') await (await import('./cli/streamed-files.ts')).backUpToStdout(flags, terminal)
      else await (await import('./cli/backup.ts')).backUpCommand(file, flags, terminal)
    })
  postern
    .command('restore')
    .argument('<file>', 'the backup; - for stdin')
    .description('make a data folder from a backup')
    // No default: it makes a folder.
    .addOption(
      new Option('--data <dir>', 'data folder to make, which must be empty or missing')
        .env('POSTERN_DATA')
        .makeOptionMandatory(),
    )
    .action(async (file: string, flags) => {
      const { restoreCommand } = await import('./cli/backup.ts')
      const { withInputFile } = await import('./cli/streamed-files.ts')
      await withInputFile(file, 'backup', (path) => restoreCommand(path, flags, terminal))
    })
  postern
    .command('export')
    .argument('[file]', 'the file to make; - for stdout, as without it')
    .description('write all records as JSON lines, without secrets, while the server runs or not')
    .addOption(dataOption('data folder'))
    .action(async (file: string | undefined, flags) =>
      (await import('./cli/export-import.ts')).exportCommand(file === '-' ? undefined : file, flags, terminal),
    )
  postern
    .command('import')
    .argument('<file>', 'an export; - for stdin')
    .description('add the records of an export, all or none; a record of the same id is replaced')
    .addOption(makingOption())
    .action(async (file: string, flags, command: Command) => {
      const { importCommand } = await import('./cli/export-import.ts')
      const { withInputFile } = await import('./cli/streamed-files.ts')
      await withInputFile(file, 'export', (path) => importCommand(path, { ...flags, ...isNamed(command) }, terminal))
    })
  postern
    .command('verify')
    .description('look at every record and every index entry, while the server runs or not')
    .option('--repair', 'write the index anew when it is not that of the records')
    .option('--remove-leftovers', 'remove connections whose namespace went with its fixture')
    .addOption(dataOption('data folder'))
    .action(async (flags) => (await import('./cli/verify.ts')).verify(flags, terminal))

  const signingKey = group('signing-key').description(
    'list, rotate and revoke the keys that sign tokens, while the server runs or not',
  )
  signingKey
    .command('list')
    .description('list the keys that are published, and what each is for')
    .addOption(dataOption('data folder'))
    .action(async (flags) => (await import('./cli/signing-key.ts')).listSigningKeys(flags, new Date(), terminal))
  signingKey
    .command('rotate')
    .description('let the next key sign; the old one is accepted until its last token is over')
    .addOption(dataOption('data folder'))
    .addHelpText('after', rotateHelp)
    .action(async (flags) => (await import('./cli/signing-key.ts')).rotateSigningKeys(flags, new Date(), terminal))
  signingKey
    .command('revoke')
    .argument('<kid>', 'the id of the key, as `signing-key list` shows it')
    // An id may begin with a dash.
    .allowUnknownOption()
    .description('drop a key: every token it signed is refused at once')
    .addOption(dataOption('data folder'))
    .action(async (kid: string, flags) =>
      (await import('./cli/signing-key.ts')).revokeSigningKey(kid, flags, new Date(), terminal),
    )

  postern
    .command('version')
    .description('print the version')
    .action(() => terminal.stdout(`${version}\n`))
  // As it was once.
  postern.addOption(new Option('-V').hideHelp()).on('option:V', () => {
    terminal.stdout(`${version}\n`)
    throw new CommanderError(0, 'commander.version', version)
  })

  postern
    .command('completions')
    .argument('<shell>', 'bash, zsh or fish')
    .description('print what makes a shell complete these commands')
    .addHelpText('after', completionsHelp)
    .action(async (shell: string) => (await import('./cli/completions.ts')).completions(postern, shell, terminal))

  postern
    .command('help')
    .argument('[command...]', 'the command, like: keys create')
    .description('print the help of a command')
    .action((names: string[]) => {
      let command = postern
      for (const name of names) {
        const next = command.commands.find((one) => one.name() === name)
        if (next === undefined)
          throw new CommandError(`unknown command '${names.join(' ')}'; --help tells what there is`, 2)
        command = next
      }
      command.outputHelp()
    })
  return postern
}

const serveHelp = `
The first start prints one operator key; POSTERN_API_KEY (at least 32 characters) supplies it instead.
Logs are JSON lines on stderr. SIGINT and SIGTERM finish the requests in flight; a second one exits at once.
SIGHUP ends nothing: it opens the audit log anew, and loads the fixtures again where their files have changed.

Example:
  postern serve --data ./platform --fixtures ./fixtures --base-url https://mcp.example.com`

const devHelp = `
Examples:
  postern dev
  postern dev --fixtures ./fixtures --port 0

Connections may point to this machine, so that a server under development can be tried.`

const auditHelp = `
Examples:
  postern audit verify audit.jsonl.2 audit.jsonl.1 audit.jsonl
  zcat -f audit.jsonl.2.gz audit.jsonl.1 audit.jsonl | postern audit verify -`

const rotateHelp = `
A key is published before it signs (next), signs (active), and is accepted for a day after (retired), so no
token is refused on the way. Verifiers may keep the list of keys for five minutes; rotate again after that.`

const completionsHelp = `
Examples:
  source <(postern completions bash)
  postern completions zsh > "\${fpath[1]}/_postern"
  postern completions fish > ~/.config/fish/completions/postern.fish`

const explainHelp = `
Example:
  echo "$TOKEN" | postern token explain - --namespace northwind --metadata team=store-ops

Exit code 1 where the described request is refused.`

/** Exit codes: 0 fine, 1 the work failed, 2 wrong usage. */
async function main(argv: readonly string[]): Promise<number> {
  let code = 0
  const postern = program((exit) => {
    code = exit
  })
  try {
    expectCommandFirst(argv, postern)
    await postern.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError)
      return error.exitCode === 0 || error.code === 'commander.help' ? helpCode(error) : 2
    if (error instanceof CommandError) {
      terminal.stderr(`${error.message}\n`)
      return error.exitCode
    }
    const message = error instanceof Error ? error.message : String(error)
    terminal.stderr(`postern failed: ${message}\n`)
    return 1
  }
}

/** Other programs take flags before the command. Throws CommandError that says where they go here. */
function expectCommandFirst(argv: readonly string[], { commands, options }: Command): void {
  const [flag = ''] = argv
  const name = flag.replace(/=.*/, '')
  if (!flag.startsWith('-') || flag === '-h' || flag === '--help') return
  if (options.some(({ short, long }) => short === name || long === name)) return
  const command = argv.find((word) => commands.some((one) => one.name() === word))
  if (command === undefined) return
  throw new CommandError(`flags come after the command: \`postern ${command} ${flag} …\``, 2)
}

/** Help that was asked for is fine; help that is shown because no command was given is wrong usage. */
function helpCode(error: CommanderError): number {
  return error.code === 'commander.help' && error.exitCode !== 0 ? 2 : 0
}

const argv = process.argv.slice(2)
const isServer = ['serve', 'dev'].includes(argv[0] ?? '')
process.exitCode = 0
const code = await main(argv)
// Who reads the log of a server may have stopped, or closed the terminal; a command waits for as long as its reader
// takes.
const problem = await written(isServer ? 1000 : 2 ** 31 - 1)
if (problem === undefined || isServer) process.exit(code)
process.stderr.write(`cannot write: ${problem}\n`)
process.exit(code || 1)
