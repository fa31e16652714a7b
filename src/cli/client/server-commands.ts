/** `postern server`: the servers that are registered with a platform. */

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { namespaceOf } from '../../model/names.ts'
import { ServerDetail, ServerItem, ServerMade } from '../../model/server.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { countText } from '../count-text.ts'
import { readJsonFile } from '../json-input.ts'
import { allPages, type ClientFlags, noNamespace, noServer, pathSegment, queryOf } from './api-client.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

const pathOf = (name: string) => `/servers/${pathSegment(name)}`

export function addServerActions(server: Command, { remote }: RemoteCommands): void {
  remote(server, 'add', 'register a server, or change it')
    .argument('<name>', 'the name of the server: NAMESPACE/NAME')
    .argument('<source>', 'the URL of an MCP server, or a JSON file with its details; - for stdin')
    .run(async ({ flags, request, say, stderr }, name: string, source: string) => {
      const isUrl = /^https?:/i.test(source)
      if (!isUrl && /^[a-z][a-z0-9+.-]*:\/\//i.test(source))
        throw new CommandError(`${source}: must be an http or https URL, or a file`, 2)
      if (!isUrl && source !== '-' && !existsSync(source))
        throw new CommandError(`${source}: is neither a URL (http:// or https://) nor a file`)
      const body = isUrl ? { mcpUrl: source } : readJsonFile(source)
      const options = { ...noNamespace(namespaceOf(name)), body, reads: ServerMade }
      const made = await request('PUT', pathOf(name), options)
      // With `--json` they are in the body.
      for (const warning of flags.json === true ? [] : (made.warnings ?? [])) stderr(`warning: ${oneLine(warning)}\n`)
      say(made, `${name} is registered`)
    })
  remote(server, 'list', 'list the registered servers')
    .option('-n, --namespace <name>', 'only servers in this namespace (default: in all)')
    .run((context) => showServers(context, []))
  remote(server, 'search', 'search the registered servers')
    .argument('[words...]', 'words to search for; without words, list all servers')
    .option('-n, --namespace <name>', 'only servers in this namespace (default: in all)')
    .run(showServers)
  remote(server, 'get', 'print the details of a server')
    .argument('<name>', 'the name of the server: NAMESPACE/NAME')
    .run(async ({ request, print }, name: string) => print(await request('GET', pathOf(name), noServer(name))))
  remote(server, 'introspect', 'ask a server again for its tools, resources and prompts')
    .argument('<name>', 'the name of the server: NAMESPACE/NAME')
    .run(async ({ request, say }, name: string) => {
      const made = await request('POST', `${pathOf(name)}/.introspect`, { reads: ServerDetail })
      const count = (items: unknown[] | null, what: string) => countText(items?.length ?? 0, what)
      const has = [count(made.tools, 'tool'), count(made.resources, 'resource'), count(made.prompts, 'prompt')]
      say(made, `${name} has ${has.join(', ')}`)
    })
  remote(server, 'rm', 'delete a server from the catalogue')
    .argument('<name>', 'the name of the server: NAMESPACE/NAME')
    .run(async ({ request, say }, name: string) => {
      const removed = await request('DELETE', pathOf(name), noServer(name))
      say(removed, `${name} is deleted. Connections to it stay, but mocks of it answer no more`)
    })
}

async function showServers(context: CommandContext<ClientFlags>, words: readonly string[]): Promise<void> {
  const namespace = context.flags.namespace || undefined
  const query = queryOf({ q: words.length > 0 ? words.join(' ') : undefined, namespace })
  const found = await allPages(context, `/servers${query}`, ['servers', ServerItem], 100)
  const rows = found.servers.map(({ qualifiedName, displayName, isDeployed, description }) => [
    qualifiedName,
    displayName,
    isDeployed ? 'http' : '',
    description,
  ])
  context.show(found, ['SERVER', 'NAME', 'REACHED BY', 'DESCRIPTION'], rows)
}
