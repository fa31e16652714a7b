/** `postern api`: any operation of the HTTP API whose answer is JSON, for what no other command does. */

import { type Command, Option } from 'commander'
import { CommandError } from '../../errors.ts'
import { readJson } from '../json-input.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

interface Flags {
  readonly method?: string
  readonly body?: string
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export function addApiCommand(postern: Command, { remote }: RemoteCommands): void {
  remote(postern, 'api', 'send any request to the HTTP API, and print its JSON answer')
    .argument('<path>', 'the path below the base URL, with its query, like /overview')
    .addOption(new Option('--method <method>', 'the HTTP method (default: GET, or POST with a body)').choices(methods))
    .option('--body <json>', 'the JSON body: JSON itself or a file with it; - reads it from stdin')
    .addHelpText('after', apiHelp)
    .run(async ({ flags, request, print }: CommandContext<Flags>, path: string) => {
      if (!path.startsWith('/')) throw new CommandError(`${path}: must begin with /, like /overview`, 2)
      const body = flags.body === undefined ? undefined : readJson(flags.body, '--body')
      print(await request(flags.method ?? (body === undefined ? 'GET' : 'POST'), path, { body }))
    })
}

const apiHelp = `
Examples:
  postern api '/calls?outcome=refused'
  postern api --method=PATCH --body='{"pins": "block"}' /namespaces/acme`
