/** `postern client-config`: the file by which a client finds an endpoint (contract, 20.14). */

import { type Command, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { type ClientName, clientNames, endpointName, RecipeList, recipeOf } from '../../model/recipe.ts'
import { pathSegment, queryOf } from './api-client.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

interface Flags {
  readonly for: ClientName
  readonly connection?: string
  readonly name?: string
}

export function addClientConfigCommand(postern: Command, { remote }: RemoteCommands): void {
  remote(postern, 'client-config', 'print the configuration of a client for an endpoint, without any credential')
    .argument('<endpoint>', 'NAMESPACE, or NAMESPACE/VIEW')
    .addOption(new Option('--for <client>', 'the client').choices(clientNames).makeOptionMandatory())
    .option('--connection <id>', 'configure only this connection of the namespace')
    .option(
      '--name <name>',
      'the name of the endpoint in the client (default: NAMESPACE, NAMESPACE-VIEW, or the id of the connection)',
    )
    .run(async ({ flags, request, stdout, stderr }: CommandContext<Flags>, endpoint: string) => {
      const [namespace = '', view, ...rest] = endpoint.split('/')
      if (rest.length > 0) throw new CommandError(`${endpoint}: must be NAMESPACE or NAMESPACE/VIEW`, 2)
      const { connection } = flags
      const asked = connection === undefined ? endpoint : `${endpoint}/${connection}`
      const missing = `there is no endpoint ${asked}, or you have no access to it`
      const path = `/connect/${pathSegment(namespace)}/.clients${queryOf({ view, connection })}`
      const { url } = await request('GET', path, { reads: RecipeList, missing })
      const base = url.slice(0, url.indexOf('/connect/'))
      const name = flags.name ?? connection ?? endpointName(namespace, view)
      const { content, file, command, link } = recipeOf(flags.for, { base, namespace, url, name })
      stdout(content)
      stderr(`belongs in ${file}\n`)
      if (command !== undefined) stderr(`or run: ${command}\n`)
      if (link !== undefined) stderr(`or open: ${link}\n`)
    })
}
