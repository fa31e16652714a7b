/** `postern namespace`: the namespaces of the caller. */

import { type Command, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { NamespaceItem } from '../../model/organization.ts'
import { group } from '../options.ts'
import { allPages, noNamespace, pathSegment } from './api-client.ts'
import { type CommandContext, confirmDeletion, type RemoteCommands } from './context.ts'

type Settings = Partial<Record<'pins' | 'registry' | 'title' | 'description' | 'instructions', string>>

const nothingToChange = 'nothing to change: give --pins, --registry, --title, --description or --instructions'
const pathOf = (name: string) => `/namespaces/${pathSegment(name)}`

export function addNamespaceCommands(postern: Command, { remote }: RemoteCommands): void {
  const namespace = group(postern, 'namespace').description('create, list, change and delete namespaces')
  remote(namespace, 'add', 'create a namespace')
    .argument('<name>', 'the name of the namespace: 3 to 39 characters from a-z, 0-9 and -')
    .option('--organization <id>', 'organization that owns the namespace (default: none, you own it)')
    .run(async ({ flags, request, say }: CommandContext<{ organization?: string }>, name: string) => {
      const { organization } = flags
      const body = organization === undefined ? undefined : { organizationId: organization }
      const made = await request('PUT', pathOf(name), { body })
      say(made, `the namespace ${name} is there, and you manage it`)
    })
  remote(namespace, 'list', 'list the namespaces that you may access').run(async (context) => {
    const found = await allPages(context, '/namespaces', ['namespaces', NamespaceItem], 50)
    const rows = found.namespaces.map(({ name }) => [name])
    context.show(found, ['NAMESPACE'], rows)
  })
  remote(namespace, 'set', 'change the settings of a namespace')
    .argument('<name>', 'the name of the namespace')
    .addOption(
      new Option('--pins <setting>', 'what happens when a server changes a tool').choices(['off', 'warn', 'block']),
    )
    .addOption(new Option('--registry <setting>', 'who may read its registry').choices(['off', 'public', 'members']))
    .option('--title <text>', 'title of its endpoint')
    .option('--description <text>', 'description of its endpoint, for people')
    .option('--instructions <text>', 'instructions of its endpoint, for models')
    .run(async ({ flags, request, say }: CommandContext<Settings>, name: string) => {
      const { pins, registry, title, description, instructions } = flags
      const body = { pins, registry, title, description, instructions }
      if (Object.values(body).every((one) => one === undefined)) throw new CommandError(nothingToChange, 2)
      const changed = await request('PATCH', pathOf(name), { ...noNamespace(name), body })
      say(changed, `the namespace ${name} is changed`)
    })
  const rmWords = 'delete a namespace with its connections, views and registry links (delete its servers first)'
  remote(namespace, 'rm', rmWords)
    .argument('<name>', 'the name of the namespace')
    .option('--yes', 'delete without asking')
    .run(async ({ flags, request, say }: CommandContext<{ yes?: boolean }>, name: string) => {
      await confirmDeletion(`Delete the namespace ${name} with its connections, views and registry links?`, flags)
      const removed = await request('DELETE', pathOf(name), noNamespace(name))
      say(removed, `the namespace ${name} is deleted`)
    })
}
