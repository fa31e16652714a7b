/** `postern view`: the views of a namespace, each with a URL. */

import type { Command } from 'commander'
import { ViewDetail, ViewList } from '../../model/view.ts'
import { readJsonFile } from '../json-input.ts'
import { group } from '../options.ts'
import { pathSegment, type RequestOptions } from './api-client.ts'
import { type CommandContext, confirmDeletion, type RemoteCommands } from './context.ts'
import { tellMistakes } from './token-commands.ts'

export function addViewCommands(postern: Command, { inNamespace }: RemoteCommands): void {
  const view = group(postern, 'view').description('write, list and delete views, each a part of a namespace with a URL')
  inNamespace(view, 'put', 'create a view, or replace it')
    .argument('<name>', 'the name of the view: up to 39 characters from a-z, 0-9 and -')
    .argument('<file>', 'JSON file with the view, such as its title and policy; - for stdin')
    .addHelpText('after', putHelp)
    .run(async (context, name: string, file: string) => {
      const body = readJsonFile(file)
      const path = pathOf(await context.namespace(), name)
      const made = await context.request('PUT', path, { body, reads: ViewDetail })
      context.say(made, made.url)
      const { policy } = body as { policy?: unknown }
      if (policy !== undefined) await tellMistakes(context, { policy }, 'view')
    })
  inNamespace(view, 'list', 'list views with their URLs').run(async (context) => {
    const path = `/namespaces/${pathSegment(await context.namespace())}/views`
    const found = await context.request('GET', path, { reads: ViewList })
    const rows = found.views.map(({ name, title, url }) => [name, title, url])
    context.show(found, ['VIEW', 'TITLE', 'URL'], rows)
  })
  inNamespace(view, 'get', 'print a view')
    .argument('<name>', 'the name of the view')
    .run(async (context, name: string) => {
      const namespace = await context.namespace()
      context.print(await context.request('GET', pathOf(namespace, name), noView(namespace, name)))
    })
  inNamespace(view, 'rm', 'delete a view: nobody can use its URL from then on')
    .argument('<name>', 'the name of the view')
    .option('--yes', 'delete without asking')
    .run(async (context: CommandContext<{ yes?: boolean }>, name: string) => {
      const namespace = await context.namespace()
      await confirmDeletion(`Delete the view ${name} of ${namespace}?`, context.flags)
      const removed = await context.request('DELETE', pathOf(namespace, name), noView(namespace, name))
      context.say(removed, `the view ${name} is deleted`)
    })
}

const putHelp = `
Example:
  echo '{"title":"Reading","policy":[{"rpcReqMatch":{"params.name":"^get_"}}]}' | postern view put reading - -n acme`

const pathOf = (namespace: string, name: string) => `/namespaces/${pathSegment(namespace)}/views/${pathSegment(name)}`

function noView(namespace: string, name: string): RequestOptions {
  return { missing: `there is no view ${name} in ${namespace}: see \`postern view list -n ${namespace}\`` }
}
