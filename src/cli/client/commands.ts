/** Commands that speak to a running platform over HTTP: what they are called, and their flags. */

import { type Command, InvalidArgumentError, Option } from 'commander'
import { operationKinds, resourceTypes } from '../../model/constraint.ts'
import { type Context, collect, group } from '../options.ts'
import type { CommandContext } from './api-client.ts'

const urlOption = () =>
  new Option('--url <url>', 'the platform (default: the one logged in to last)').env('POSTERN_URL')
const namespaceOption = () =>
  new Option('-n, --namespace <name>', 'the namespace (default: the only one there is)').env('POSTERN_NAMESPACE')
const jsonOption = () => new Option('--json', 'print what the platform answered, as JSON')
const many = (flag: string, words: string, choices?: readonly string[]) =>
  new Option(flag, `${words}; repeatable`).argParser((value: string, previous?: readonly string[]) => {
    if (choices?.includes(value) === false) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`)
    return collect(value, previous)
  })

/** A command of a running platform. */
const remote = (command: Command) => command.addOption(urlOption()).addOption(jsonOption())
const inNamespace = (command: Command) => remote(command.addOption(namespaceOption()))

/** Makes what an action gets, from the flags of its command. */
type ContextOf = (flags: CommandContext['flags']) => CommandContext

/** `server` and `token`: groups that have commands of their own already. */
export function addClientCommands(postern: Command, context: Context, server: Command, token: Command): void {
  const { terminal } = context
  const contextOf: ContextOf = (flags) => ({ flags, environment: process.env, terminal })

  postern
    .command('login')
    .argument('<url>', 'the platform, like https://mcp.example.com')
    .description('keep an API key, from the terminal or stdin, for the commands that speak to a platform')
    .addOption(jsonOption())
    .action(async (url: string, flags) => (await import('./login.ts')).login(url, flags, process.env, terminal))
  postern
    .command('logout')
    .argument('[url]', 'the platform (default: the one logged in to last)')
    .description('forget the API key of a platform')
    .action(async (url: string | undefined) => (await import('./login.ts')).logout(url, process.env, terminal))
  remote(postern.command('whoami'))
    .description('print whose key commands use, and what it may access')
    .action(async (flags) => (await import('./login.ts')).whoAmI(flags, process.env, terminal))

  addServerActions(server, contextOf)
  addNamespaceCommands(postern, contextOf)
  addOrganizationCommands(postern, contextOf)
  addConnectionCommands(postern, contextOf)
  addToolCommands(postern, contextOf, context.exit)

  remote(token.command('mint'))
    .description('mint a service token and print it')
    .option('--policy <file>', 'a policy as JSON: a file, or - for stdin')
    .addOption(many('--namespaces <name>', 'only this namespace'))
    .addOption(many('--resources <type>', `only ${resourceTypes.join(', ')}`, resourceTypes))
    .addOption(many('--operations <kind>', `only ${operationKinds.join(', ')}`, operationKinds))
    .addOption(many('--metadata <key=value>', 'only connections with this metadata'))
    .addOption(many('--rpc <path=pattern>', 'only MCP requests that match, like params.name=^get_'))
    .option('--ttl <duration>', 'how long it is good, like 30m (default: 1h)')
    .option('--organization <id>', 'act for this organization')
    .action(async (flags) => (await import('./token-mint.ts')).mintToken(flags, contextOf(flags)))
}

function addServerActions(server: Command, contextOf: ContextOf): void {
  remote(server.command('add'))
    .argument('<name>', 'NAMESPACE/NAME')
    .argument('<source>', 'the URL of an MCP server, or a JSON file with its details; - for stdin')
    .description('register a server, or change it')
    .action(async (name: string, source: string, flags) =>
      (await import('./server-commands.ts')).addServer(name, source, contextOf(flags)),
    )
  remote(server.command('search'))
    .argument('[words...]', 'what to search for; all servers without it')
    .option('-n, --namespace <name>', 'in this namespace alone (default: in all)')
    .description('search the registered servers')
    .action(async (words: string[], flags) =>
      (await import('./server-commands.ts')).searchServers(words, contextOf(flags)),
    )
  for (const [name, description] of [
    ['get', 'print a server’s details'],
    ['introspect', 'ask a server again what it has'],
    ['rm', 'delete a server from the registry'],
  ] as const) {
    remote(server.command(name))
      .argument('<name>', 'NAMESPACE/NAME')
      .description(description)
      .action(async (qualifiedName: string, flags) => {
        const { getServer, introspectServer, removeServer } = await import('./server-commands.ts')
        return { get: getServer, introspect: introspectServer, rm: removeServer }[name](qualifiedName, contextOf(flags))
      })
  }
}

function addNamespaceCommands(postern: Command, contextOf: ContextOf): void {
  const namespace = group(postern, 'namespace').description('make, list and delete namespaces')
  remote(namespace.command('add'))
    .argument('<name>', '3 to 39 of a-z, 0-9 and -')
    .description('make a namespace')
    .option('--organization <id>', 'for this organization (default: for yourself)')
    .action(async (name: string, flags) =>
      (await import('./namespace-commands.ts')).addNamespace(name, flags.organization, contextOf(flags)),
    )
  remote(namespace.command('list'))
    .description('list the namespaces that you may access')
    .action(async (flags) => (await import('./namespace-commands.ts')).listNamespaces(contextOf(flags)))
  remote(namespace.command('rm'))
    .argument('<name>', 'the namespace')
    .description('delete a namespace with all its connections')
    .option('--yes', 'do not ask')
    .action(async (name: string, flags) =>
      (await import('./namespace-commands.ts')).removeNamespace(name, contextOf(flags)),
    )
}

function addOrganizationCommands(postern: Command, contextOf: ContextOf): void {
  const org = group(postern, 'org').description('manage organizations, their members and API keys')
  remote(org.command('add'))
    .argument('<id>', 'the id of the organization')
    .description('make an organization, as an operator')
    .option('--owner <user>', 'its owner (default: yourself)')
    .option('--name <name>', 'its name')
    .action(async (id: string, flags) =>
      (await import('./organization-commands.ts')).addOrganization(id, flags, contextOf(flags)),
    )
  remote(org.command('list'))
    .description('list your organizations')
    .action(async (flags) => (await import('./organization-commands.ts')).listOrganizations(contextOf(flags)))
  remote(org.command('get'))
    .argument('<id>', 'the organization')
    .description('list the members of an organization')
    .action(async (id: string, flags) =>
      (await import('./organization-commands.ts')).getOrganization(id, contextOf(flags)),
    )
  remote(org.command('rm'))
    .argument('<id>', 'the organization')
    .description('delete an organization with its members and API keys')
    .option('--yes', 'do not ask')
    .action(async (id: string, flags) =>
      (await import('./organization-commands.ts')).removeOrganization(id, contextOf(flags)),
    )
  addMemberCommands(org, contextOf)
  addOrganizationKeyCommands(org, contextOf)
}

function addMemberCommands(org: Command, contextOf: ContextOf): void {
  const member = group(org, 'member').description('manage the members of an organization')
  remote(member.command('add'))
    .argument('<organization>', 'the id of the organization')
    .argument('<user>', 'the id of the user')
    .description('make a user a member, or change the role')
    .addOption(
      new Option('--role <role>', 'what the user may do').choices(['owner', 'admin', 'member']).default('member'),
    )
    .action(async (organization: string, user: string, flags) =>
      (await import('./organization-commands.ts')).setMember(organization, user, flags.role, contextOf(flags)),
    )
  remote(member.command('rm'))
    .argument('<organization>', 'the id of the organization')
    .argument('<user>', 'the id of the user')
    .description('remove a member')
    .action(async (organization: string, user: string, flags) =>
      (await import('./organization-commands.ts')).removeMember(organization, user, contextOf(flags)),
    )
}

function addOrganizationKeyCommands(org: Command, contextOf: ContextOf): void {
  const key = group(org, 'key').description('manage the API keys of an organization')
  remote(key.command('create'))
    .argument('<organization>', 'the id of the organization')
    .argument('<name>', 'what it is for')
    .description('make a key that acts for the organization, and print it, once')
    .action(async (organization: string, name: string, flags) =>
      (await import('./organization-commands.ts')).createOrganizationKey(organization, name, contextOf(flags)),
    )
  remote(key.command('list'))
    .argument('<organization>', 'the id of the organization')
    .description('list its keys')
    .action(async (organization: string, flags) =>
      (await import('./organization-commands.ts')).listOrganizationKeys(organization, contextOf(flags)),
    )
  remote(key.command('revoke'))
    .argument('<organization>', 'the id of the organization')
    .argument('<id>', 'the id of the key, as `org key list` shows it')
    .description('revoke a key and every token minted with it')
    .action(async (organization: string, id: string, flags) =>
      (await import('./organization-commands.ts')).revokeOrganizationKey(organization, id, contextOf(flags)),
    )
}

function addConnectionCommands(postern: Command, contextOf: ContextOf): void {
  const connection = group(postern, 'connection').description('make, list and delete connections')
  inNamespace(connection.command('add'))
    .argument('<id>', 'the id of the connection')
    .argument('<target>', 'the URL of an MCP server, or NAMESPACE/NAME of a registered one')
    .description('make a connection, or change it')
    .option('--header-file <file>', 'headers to send, one "Name: value" a line; - for stdin')
    .addOption(many('--metadata <key=value>', 'metadata of the connection'))
    .option('--mock', 'answer from the server’s definition, without reaching it')
    .action(async (id: string, target: string, flags) =>
      (await import('./connection-commands.ts')).addConnection(id, target, flags, contextOf(flags)),
    )
  inNamespace(connection.command('list'))
    .description('list connections')
    .addOption(many('--metadata <key=value>', 'only those with this metadata'))
    .action(async (flags) => (await import('./connection-commands.ts')).listConnections(flags, contextOf(flags)))
  inNamespace(connection.command('get'))
    .argument('<id>', 'the connection')
    .description('print a connection')
    .action(async (id: string, flags) => (await import('./connection-commands.ts')).getConnection(id, contextOf(flags)))
  inNamespace(connection.command('rm'))
    .argument('<id>', 'the connection')
    .description('delete a connection')
    .action(async (id: string, flags) =>
      (await import('./connection-commands.ts')).removeConnection(id, contextOf(flags)),
    )
}

function addToolCommands(postern: Command, contextOf: ContextOf, exit: Context['exit']): void {
  const tool = group(postern, 'tool').description('find and call tools')
  inNamespace(tool.command('list'))
    .argument('[connection]', 'only of this connection')
    .description('list the tools of a namespace')
    .action(async (connection: string | undefined, flags) =>
      (await import('./tool-commands.ts')).listTools(connection, contextOf(flags)),
    )
  inNamespace(tool.command('search'))
    .argument('<words...>', 'what to search for')
    .description('search the tools of a namespace')
    .action(async (words: string[], flags) => (await import('./tool-commands.ts')).searchTools(words, contextOf(flags)))
  inNamespace(tool.command('call'))
    .argument('<tool>', 'CONNECTION.TOOL')
    .argument('[arguments...]', 'JSON, - for stdin, or KEY=VALUE pairs')
    .description('call a tool and print its result; exit 1 if it says that it failed')
    .action(async (name: string, given: string[], flags) =>
      exit(await (await import('./tool-commands.ts')).callTool(name, given, contextOf(flags))),
    )
}
