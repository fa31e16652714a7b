/** The commands about all records at once, of a store or of fixtures. */

import { type Command, Option } from 'commander'
import { CommandError } from '../errors.ts'
import { callOutcomes } from '../model/recorded-call.ts'
import { either } from './client/context.ts'
import {
  type Context,
  dataOption,
  group,
  instanceSecretOption,
  onData,
  onFolder,
  onNamedData,
  storePasswordOption,
} from './options.ts'

/** A file of ours would be no backup of a database: its own tools know what is in it. */
function refuseStore({ store }: { readonly store?: string }): void {
  if (store === undefined || store === '') return
  throw new CommandError(
    'this command does not work with --store: back up a database with its own tools (pg_dump, or those of your provider) ' +
      'and its instance secret in another place, or copy everything to a data folder with `postern store copy`',
  )
}

/** A backup is the whole folder, secrets included; an export is the records alone, for another version or system. */
export function addDataCommands(postern: Command, { terminal }: Context): void {
  onFolder(postern, 'backup', 'write all records and secrets of a data folder to one file')
    .argument('<file>', 'file to create; - for stdout')
    .action(async (file: string, flags) => {
      refuseStore(flags)
      // A backup is checked as a whole before it is handed out, so stdout gets it from a private temporary file.
      if (file === '-') await (await import('./streamed-files.ts')).backUpToStdout(flags, terminal)
      else await (await import('./backup-command.ts')).backUpCommand(file, flags, terminal)
    })
  // No default: restore creates the folder, so the operator must name it.
  const made = new Option('--data <dir>', 'data folder to create, which must be empty or missing').env('POSTERN_DATA')
  onFolder(postern, 'restore', 'create a data folder from a backup', made.makeOptionMandatory())
    .argument('<file>', 'a backup; - for stdin')
    .action(async (file: string, flags) => {
      refuseStore(flags)
      const { restoreCommand } = await import('./backup-command.ts')
      const { withInputFile } = await import('./streamed-files.ts')
      await withInputFile(file, 'backup', (path) => restoreCommand(path, flags, terminal))
    })
  onData(postern, 'export', 'write all records as JSON lines, without secrets')
    .argument('[file]', 'file to create; - for stdout (default: stdout)')
    .action(async (file: string | undefined, flags) =>
      (await import('./export-import.ts')).exportCommand(file === '-' ? undefined : file, flags, terminal),
    )
  onNamedData(postern, 'import', 'add the records of an export, all or none; replace records that have the same id')
    .argument('<file>', 'an export; - for stdin')
    .action(async (file: string, flags) => {
      const { importCommand } = await import('./export-import.ts')
      const { withInputFile } = await import('./streamed-files.ts')
      await withInputFile(file, 'export', (path) => importCommand(path, flags, terminal))
    })
}

/** `calls`: who called which tool. */
export function addCallCommands(postern: Command, context: Context): void {
  const calls = onData(postern, 'calls', 'show recorded calls of tools')
    .option('--since <duration>', 'only calls made within this time, like 1h')
    .option('-n, --namespace <name>', 'only calls in this namespace')
    .option('--connection <id>', 'only calls through this connection, or NAMESPACE/ID')
    .option('--tool <name>', 'only calls of this tool')
    .option('--user <id>', 'only calls by this user')
    .option('--token <jti>', 'only calls with this token or grant, or with a token that was minted with this one')
    .addOption(new Option('--outcome <outcome>', 'only calls with this outcome').choices(callOutcomes))
    .option(
      '--args <json>',
      'only calls with these arguments, by their keyed hash in a data folder: JSON, or a file with it; - for stdin',
    )
    .option('--follow', 'keep printing new calls')
    .option('--json', 'print the lines as they are recorded')
  either(calls, context, 'showCalls', {
    onMachine: () => import('./calls.ts'),
    overHttp: () => import('./client/record-commands.ts'),
  })
}

/** `server`: the registry of servers, from outside of it. */
export function addServerCommands(postern: Command, context: Context): Command {
  const server = group(postern, 'server').description('register, search and import MCP servers')
  const take = onNamedData(server, 'import', 'register servers from server.json or a dump of an MCP registry')
    .argument('<file>', 'server.json documents, or pages of an MCP registry; - for stdin')
    .option('-n, --namespace <name>', 'namespace for all servers (default: the namespace in each name)')
    .option('--owner <user>', 'owner of created namespaces (default: the user operator; over HTTP, yourself)')
  const onMachine = () => import('./import-servers-command.ts')
  const overHttp = async () => ({ importServersCommand: (await onMachine()).importOverHttp })
  either(take, context, 'importServersCommand', { onMachine, overHttp })
  return server
}

/** `store`: whether it is sound, moving it from one machine to several and back, and what a database does for us. */
export function addStoreCommands(postern: Command, { terminal }: Context): void {
  const store = group(postern, 'store').description('show, verify, upgrade and copy the store')
  onData(store, 'status', 'print where the store is, whether standbys copy it, and which replicas use it').action(
    async (flags) => (await import('./store-command.ts')).storeStatus(flags, terminal),
  )
  onData(store, 'migrate', 'create or upgrade the schema of a database, as the next start would').action(
    async (flags) => (await import('./store-command.ts')).migrateStore(flags, terminal),
  )
  onData(store, 'verify', 'check every record and index entry')
    .option('--repair', 'rebuild the index if it does not match the records')
    .action(async (flags) => (await import('./verify-command.ts')).verify(flags, terminal))
  store
    .command('copy')
    .description('copy a store with everything in it; the source may be in use')
    .requiredOption('--from <store>', 'data folder, or postgres://user@host:5432/database')
    .requiredOption('--to <store>', 'data folder or database URL, which must be new or empty')
    .addOption(dataOption('folder of the audit log, if neither store is a data folder'))
    .addOption(instanceSecretOption('file with the instance secret, if the source is a database'))
    .addOption(storePasswordOption('file with the password of a database whose URL has none'))
    .addHelpText('after', copyHelp)
    .action(async (flags) => (await import('./store-command.ts')).copyStore(flags, terminal))
}

/** `fixtures check` needs no data folder: it runs in a pipeline, before anything is deployed. */
export function addFixtureCommands(postern: Command, { terminal }: Context): void {
  group(postern, 'fixtures')
    .description('check folders of fixtures')
    .command('check')
    .argument('<dir...>', 'folders of fixtures, checked as one set')
    .description('check fixtures and print every problem as "file: path: message"')
    // A warning names something that works, and that its author probably did not intend: alone it fails no pipeline.
    .option('--strict', 'treat warnings as errors')
    .action(async (folders: string[], flags) => {
      await (await import('./check-command.ts')).check(folders, flags, terminal)
    })
}

const copyHelp = `
The last line has the number of records and a hash of all records. A copy of the copy has the same hash.

Example:
  postern store copy --from ./postern-data --to postgres://postern@db.example.com:5432/postern`
