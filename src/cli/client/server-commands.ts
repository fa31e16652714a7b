/** `postern server`: the servers that are registered with a platform. */

import { CommandError } from '../../errors.ts'
import { namespaceOf } from '../../model/names.ts'
import type { ServerDetail, ServerItem, ServerMade } from '../../model/server.ts'
import { escapeControlCharacters } from '../../ops/escape-control.ts'
import { countText } from '../count-text.ts'
import { readJsonFile } from '../json-input.ts'
import { allPages, type CommandContext, openClient, pathSegment } from './api-client.ts'
import { noNamespace, noServer } from './missing.ts'
import { printJson, printSentence, printTable } from './output.ts'

/** `source`: the URL of an MCP server, or a file with the body of `PUT /servers`. */
export async function addServer(
  name: string,
  source: string,
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source) && !/^https?:/i.test(source))
    throw new CommandError(`${source}: must be an http or https URL, or a file`, 2)
  const body = /^https?:/i.test(source) ? { mcpUrl: source } : readJsonFile(source)
  const path = `/servers/${pathSegment(name)}`
  const made = await openClient(flags, environment).request<ServerMade>('PUT', path, {
    ...noNamespace(namespaceOf(name)),
    body,
  })
  // With `--json` they are in the body.
  for (const warning of flags.json === true ? [] : (made.warnings ?? []))
    terminal.stderr(`warning: ${escapeControlCharacters(warning)}\n`)
  printSentence(made, flags, `${name} is registered`, terminal)
}

/** Without words, all servers. */
export async function searchServers(
  words: readonly string[],
  { flags, environment, terminal }: CommandContext,
): Promise<void> {
  const { namespace, ...rest } = flags
  const query = new URLSearchParams({
    ...(words.length > 0 && { q: words.join(' ') }),
    ...(namespace && { namespace }),
  })
  const found = await allPages<'servers', ServerItem>(
    openClient(rest, environment),
    `/servers?${query}`,
    'servers',
    100,
  )
  const rows = found.servers.map((server) => [
    server.qualifiedName,
    server.displayName,
    server.isDeployed ? 'http' : '',
    server.description,
  ])
  printTable(found, flags, { heading: ['SERVER', 'NAME', 'REACHED BY', 'DESCRIPTION'], rows: rows }, terminal)
}

export async function getServer(name: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  printJson(
    await openClient(flags, environment).request('GET', `/servers/${pathSegment(name)}`, noServer(name)),
    flags,
    terminal,
  )
}

export async function introspectServer(name: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  const server = await openClient(flags, environment).request<ServerDetail>(
    'POST',
    `/servers/${pathSegment(name)}/.introspect`,
  )
  const count = (items: unknown[] | null, what: string) => countText(items?.length ?? 0, what)
  const has = [count(server.tools, 'tool'), count(server.resources, 'resource'), count(server.prompts, 'prompt')]
  printSentence(server, flags, `${name} has ${has.join(', ')}`, terminal)
}

export async function removeServer(name: string, { flags, environment, terminal }: CommandContext): Promise<void> {
  const removed = await openClient(flags, environment).request(
    'DELETE',
    `/servers/${pathSegment(name)}`,
    noServer(name),
  )
  printSentence(removed, flags, `${name} is deleted; connections to it stay`, terminal)
}
