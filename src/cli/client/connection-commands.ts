/** `postern connection`: the connections of a namespace. */

import { CommandError } from '../../errors.ts'
import type { Connection } from '../../model/connection.ts'
import { ConnectionId, isConnectionId } from '../../model/names.ts'
import { readInput } from '../json-input.ts'
import { allConnections, type CommandContext, openClient, pathSegment } from './api-client.ts'
import { noConnection } from './missing.ts'
import { printJson, printSentence, printTable } from './output.ts'
import { readPairs } from './pairs.ts'

export interface ConnectionFlags {
  readonly headerFile?: string
  readonly metadata?: readonly string[]
  readonly mock?: boolean
}

/** The fields of all states. */
interface StatusFields {
  readonly state: string
  readonly setupUrl?: string
  readonly message?: string
}

const states: Readonly<Record<string, string>> = {
  connected: 'is connected',
  disconnected: 'is disconnected',
  auth_required: 'needs a sign-in',
  input_required: 'needs input',
  error: 'cannot be used',
}

/** `target`: the URL of an MCP server, or a registered one. */
export async function addConnection(
  id: string,
  target: string,
  { headerFile, metadata, mock }: ConnectionFlags,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const client = openClient(flags, environment)
  const body = {
    ...(/^https?:/.test(target) ? { mcpUrl: target } : { server: target }),
    ...(headerFile !== undefined && { headers: readHeaders(headerFile) }),
    ...(metadata !== undefined && { metadata: readPairs(metadata) }),
    ...(mock === true && { mock: { enabled: true } }),
  }
  if (!isConnectionId(id)) throw new CommandError(`${id}: ${ConnectionId['errorMessage']}`, 2)
  const made = await client.request<Connection>('PUT', pathOf(await client.namespace(), id), { body })
  const { state, setupUrl, message }: StatusFields = made.status
  const next = setupUrl === undefined ? '' : `: open ${setupUrl}`
  const told = `${id} ${states[state] ?? state}${next}${message === undefined ? '' : `: ${message}`}`
  printSentence(made, flags, told, terminal)
}

export async function listConnections(
  { metadata = [] }: Pick<ConnectionFlags, 'metadata'>,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const client = openClient(flags, environment)
  const found = await allConnections(client, await client.namespace(), readPairs(metadata))
  const rows = found.connections.map((one) => [one.connectionId, one.status?.state, one.name, one.mcpUrl])
  printTable(found, flags, { heading: ['CONNECTION', 'STATE', 'NAME', 'URL'], rows: rows }, terminal)
}

export async function getConnection(id: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  const client = openClient(flags, environment)
  const namespace = await client.namespace()
  const connection = await client.request('GET', pathOf(namespace, id), noConnection(namespace, id))
  printJson(connection, flags, terminal)
}

export async function removeConnection(id: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  const client = openClient(flags, environment)
  const namespace = await client.namespace()
  const removed = await client.request('DELETE', pathOf(namespace, id), noConnection(namespace, id))
  printSentence(removed, flags, `${id} is deleted`, terminal)
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
