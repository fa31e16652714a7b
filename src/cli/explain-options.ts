/** `postern token explain`: its flags, and the way it takes. */

import { type Command, Option } from 'commander'
import { either, many } from './client/context.ts'
import { type Context, onData } from './options.ts'

/** On the server's machine it reads the data folder; over HTTP the server explains. */
export function addExplainCommand(token: Command, context: Context): void {
  const words = 'say which constraint of a token allows or refuses the request that the flags describe'
  const explain = onData(token, 'explain', words)
    .argument('[token]', 'the token; - reads it from stdin, hidden from other users (default: the credential you use)')
    .option('--policy <file>', 'explain this policy instead, as if you minted with it; - for stdin')
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

const explainHelp = `
Examples:
  echo "$TOKEN" | postern token explain - -n northwind --tool crm.find_account
  postern token explain --policy policy.json -n northwind --metadata team=store-ops

The exit code is 1 if the described request is refused.`
