/** `postern connection`: the connections of a namespace. */

import { Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { Health, HealthPage } from '../../model/health.ts'
import { ConnectionId, isConnectionId } from '../../model/names.ts'
import { PinList } from '../../model/pins.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { OptionalText } from '../../schema/shapes.ts'
import { countText } from '../count-text.ts'
import { readInput, readPairs } from '../json-input.ts'
import { group } from '../options.ts'
import { allConnections, Connection, noConnection, noServer, pathSegment } from './api-client.ts'
import { type CommandContext, many, type RemoteCommands } from './context.ts'

interface ConnectionFlags {
  readonly headerFile?: string
  readonly metadata?: readonly string[]
  readonly mock?: boolean
}

const Tools = Type.Object({ tools: Type.Array(Type.Unknown()) })

const states: Readonly<Record<string, string>> = {
  connected: 'is connected',
  disconnected: 'is disconnected',
  auth_required: 'needs a sign-in, or a header (--header-file)',
  input_required: 'needs values',
  error: 'is saved, but cannot be used yet',
}

const Server = Type.Object({ connections: Type.Array(Type.Object({ deploymentUrl: OptionalText })) })

/** Whether the connection exists. Throws CommandError if it has another server or mock, which no write changes. */
async function existsWithServer(
  { request }: Pick<CommandContext<ConnectionFlags>, 'request'>,
  { namespace, id }: { readonly namespace: string; readonly id: string },
  { target, isMocked }: { readonly target: string; readonly isMocked: boolean },
): Promise<boolean> {
  const there = await request('GET', pathOf(namespace, id), { reads: Connection }).catch((error) => {
    // Somebody who may not read it learns of the rest from the write.
    if (error instanceof CommandError && (error.status === 404 || error.status === 403)) return undefined
    throw error
  })
  if (there === undefined) return false
  const isSame = (there.mock?.enabled === true) === isMocked
  const given = /^https?:/.test(target) ? target : await urlOfServer(request, target)
  if (isSame && hrefOf(given) === hrefOf(there.mcpUrl)) return true
  const is = there.mock?.enabled === true ? 'is a mock of' : 'leads to'
  const leads = `${id} exists, and ${is} ${there.mcpUrl ?? 'another server'}`
  throw new CommandError(
    `${leads}: delete it with \`postern connection rm ${id} -n ${namespace}\` first, to add it with another server`,
  )
}

/** One URL may be written in several ways. */
const hrefOf = (url: string | null) => URL.parse(url ?? '')?.href

async function urlOfServer(request: CommandContext<ConnectionFlags>['request'], name: string): Promise<string | null> {
  const path = `/servers/${name.split('/').map(pathSegment).join('/')}`
  const { connections } = await request('GET', path, { ...noServer(name), reads: Server })
  return connections.find(({ deploymentUrl }) => deploymentUrl !== undefined)?.deploymentUrl ?? null
}

export function addConnectionCommands(postern: Command, { inNamespace }: RemoteCommands): void {
  const connection = group(postern, 'connection').description(
    'create, list, test and delete connections, and accept their tools',
  )
  inNamespace(connection, 'add', 'create a connection, or change it')
    .argument('<id>', 'the id of the connection')
    .argument('<target>', 'the URL of an MCP server, or NAMESPACE/NAME of a registered one')
    .option('--header-file <file>', 'file with headers to send, one "Name: value" a line; - for stdin')
    .addOption(many('--metadata <key=value>', 'metadata of the connection'))
    .option('--mock', 'answer from the server’s schemas and recorded answers, and contact nothing')
    .addHelpText('after', addHelp)
    .run(addConnection)
  inNamespace(connection, 'list', 'list connections')
    .addOption(many('--metadata <key=value>', 'only connections with this metadata'))
    .run(async (context: CommandContext<ConnectionFlags>) => {
      const metadata = readPairs(context.flags.metadata ?? [])
      const namespace = await context.namespace()
      const found = await allConnections(context, namespace, metadata)
      const ids = found.connections.map(({ connectionId }) => connectionId)
      const health = await healthOf(context, namespace, ids)
      const rows = found.connections.map(({ connectionId, name, mcpUrl }) => {
        const { level, summary } = health.get(connectionId) ?? {}
        return [connectionId, level, summary, name, mcpUrl]
      })
      context.show(found, ['CONNECTION', 'HEALTH', '', 'NAME', 'SERVER URL'], rows)
    })
  inNamespace(connection, 'get', 'print a connection')
    .argument('<id>', 'the id of the connection')
    .run(async (context, id: string) => {
      const namespace = await context.namespace()
      context.print(await context.request('GET', pathOf(namespace, id), noConnection(namespace, id)))
    })
  inNamespace(connection, 'test', 'contact the server of a connection; exit with code 1 if it cannot be used')
    .argument('<id>', 'the id of the connection')
    .run(async (context, id: string) => {
      const namespace = await context.namespace()
      const path = pathOf(namespace, id)
      // One that nobody has contacted says nothing of its tools.
      const tested = { ...noConnection(namespace, id), reads: Health }
      const { level, summary } = await context.request('POST', `${path}/.test`, tested)
      if (level === 'down' || level === 'off') throw new CommandError(oneLine(`${id}: ${summary}`))
      const options = { ...noConnection(namespace, id), reads: Tools }
      const found = await context.request('GET', `${path}/.tools`, options)
      context.say(found, `${id} answers, with ${countText(found.tools.length, 'tool')}`)
    })
  addPinCommands(connection, inNamespace)
  inNamespace(connection, 'rm', 'delete a connection')
    .argument('<id>', 'the id of the connection')
    .run(async (context, id: string) => {
      const namespace = await context.namespace()
      const removed = await context.request('DELETE', pathOf(namespace, id), noConnection(namespace, id))
      context.say(removed, `${id} is deleted`)
    })
}

const addHelp = `
Examples:
  postern connection add crm https://mcp.example.com/mcp --header-file headers.txt
  postern connection add weather acme/weather --mock`

async function addConnection(context: CommandContext<ConnectionFlags>, id: string, target: string): Promise<void> {
  const { headerFile, metadata, mock } = context.flags
  const body = {
    ...(/^https?:/.test(target) ? { mcpUrl: target } : { server: target }),
    headers: headerFile === undefined ? undefined : readHeaders(headerFile),
    metadata: metadata && readPairs(metadata),
    mock: mock && { enabled: true },
  }
  if (/^[\w.-]+:\d+/.test(target) || /^(?!https?:)[a-z]+:\/\//i.test(target))
    throw new CommandError(`${target}: a URL begins with http:// or https://`, 2)
  if (mock === true && 'mcpUrl' in body)
    throw new CommandError('--mock: needs NAMESPACE/NAME of a registered server, whose schemas it answers from', 2)
  if (!isConnectionId(id)) throw new CommandError(`${id}: ${ConnectionId['errorMessage']}`, 2)
  const namespace = await context.namespace()
  const isThere = await existsWithServer(context, { namespace, id }, { target, isMocked: mock === true })
  const path = pathOf(namespace, id)
  let made = await context.request('PUT', path, { body, reads: Connection })
  // A write that changes nothing contacts no server, and one that was away may be back.
  if (isThere && (made.status.state === 'error' || made.status.state === 'disconnected')) {
    await context.request('POST', `${path}/.test`, { reads: Health })
    made = await context.request('GET', path, { reads: Connection })
  }
  const { state, setupUrl, message } = made.status
  const again = state === 'error' ? `; \`postern connection test ${id} -n ${namespace}\` tries again` : ''
  const next = setupUrl === undefined ? again : `: open ${setupUrl}`
  const isRefused = state === 'auth_required' && headerFile !== undefined
  const words = isRefused ? 'is saved, but its server refuses these headers: correct them, or sign in' : states[state]
  context.say(made, `${id} ${words ?? state}${message === undefined ? '' : `: ${message}`}${next}`)
}

/** Definitions of a connection's tools, and accepting them. */
function addPinCommands(connection: Command, inNamespace: RemoteCommands['inNamespace']): void {
  inNamespace(connection, 'pins', 'list the tools of a connection with the state and hash of their definitions')
    .argument('<id>', 'the id of the connection')
    .run(async (context, id: string) => {
      const namespace = await context.namespace()
      const options = { ...noConnection(namespace, id), reads: PinList }
      const found = await context.request('GET', `${pathOf(namespace, id)}/.pins`, options)
      const all = [...found.tools, ...(found.instructions ? [{ name: '(instructions)', ...found.instructions }] : [])]
      const signs = ({ findings, truncated }: (typeof all)[number]) =>
        [...findings, ...(truncated ? ['truncated'] : [])].join(', ')
      const rows = all.map((one) => [one.name, one.state, one.hash, signs(one)])
      context.show(found, ['TOOL', 'STATE', 'HASH', 'FINDINGS'], rows)
    })
  inNamespace(connection, 'accept', 'accept definitions of a connection by their hashes')
    .argument('<id>', 'the id of the connection')
    .argument('[tool=hash...]', 'tools with the hashes that `postern connection pins` shows')
    .option('--instructions-hash <hash>', 'the instructions with this hash')
    .run(async (context: CommandContext<{ instructionsHash?: string }>, id: string, pairs: string[]) => {
      const namespace = await context.namespace()
      const { instructionsHash: instructions } = context.flags
      if (pairs.length === 0 && instructions === undefined)
        throw new CommandError(`nothing to accept: name TOOL=HASH, as \`postern connection pins ${id}\` shows`, 2)
      const body = { accept: readPairs(pairs), instructions }
      const options = { ...noConnection(namespace, id), body, reads: PinList }
      const accepted = await context.request('POST', `${pathOf(namespace, id)}/.pins`, options)
      context.say(accepted, `the definitions of ${id} are accepted`)
    })
}

/** Ids of which one request asks the health. Past it: the command asks again. */
const healthIdsMax = 100

async function healthOf({ request }: CommandContext, namespace: string, ids: readonly string[]) {
  const found = new Map<string, Health>()
  for (let at = 0; at < ids.length; at += healthIdsMax) {
    const asked = ids.slice(at, at + healthIdsMax).join()
    const path = `/connect/${pathSegment(namespace)}/.health?ids=${asked}`
    const { connections } = await request('GET', path, { reads: HealthPage })
    for (const one of connections) found.set(one.connectionId, one)
  }
  return found
}

function pathOf(namespace: string, id: string): string {
  return `/connect/${pathSegment(namespace)}/${pathSegment(id)}`
}

/** `Name: value` lines. */
function readHeaders(file: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [index, line] of readInput(file).toString().split('\n').entries()) {
    if (line.trim() === '') continue
    const colon = line.indexOf(':')
    if (colon < 1) throw new CommandError(`${file === '-' ? 'stdin' : file}:${index + 1}: must be "Name: value"`)
    headers[line.slice(0, colon).trim()] = line.slice(colon + 1).trim()
  }
  return headers
}
