/** `postern connection`, `tool` and `token mint`: the work with a running platform. */

import { CommandError } from '../errors.ts'
import { createWordIndex } from '../search/word-index.ts'
import { wordsOf } from '../search/words.ts'
import { type Answer, type ApiClient, allConnections, at, openClient } from './api-client.ts'
import { show, showWhole, tell } from './api-output.ts'
import type { Asked } from './api-registry.ts'
import { parseJson, readInput, readJsonFile } from './json-input.ts'

export interface ConnectionFlags {
  readonly headerFile?: string
  readonly metadata?: readonly string[]
  readonly mock?: boolean
}

/** `target`: the URL of an MCP server, or a registered one. */
export async function addConnection(
  id: string,
  target: string,
  { headerFile, metadata, mock }: ConnectionFlags,
  { flags, environment, terminal }: Asked,
): Promise<void> {
  const client = openClient(flags, environment)
  const body = {
    ...(/^https?:/.test(target) ? { mcpUrl: target } : { server: target }),
    ...(headerFile !== undefined && { headers: readHeaders(headerFile) }),
    ...(metadata !== undefined && { metadata: pairs(metadata) }),
    ...(mock === true && { mock: { enabled: true } }),
  }
  const made = await client.request('PUT', `/connect/${at(await client.namespace())}/${at(id)}`, body)
  const { setupUrl, message } = made.status
  const next = setupUrl === undefined ? '' : `: open ${setupUrl}`
  tell(made, flags, `${id} is ${made.status.state}${next}${message === undefined ? '' : `: ${message}`}`, terminal)
}

export async function listConnections({ flags, environment, terminal }: Asked): Promise<void> {
  const client = openClient(flags, environment)
  const found = await allConnections(client, await client.namespace())
  const rows = found.connections.map((one: Answer) => [one.connectionId, one.status?.state, one.name, one.mcpUrl])
  show(found, flags, ['CONNECTION', 'STATE', 'NAME', 'URL'], rows, terminal)
}

export async function getConnection(id: string, { flags, environment, terminal }: Asked): Promise<void> {
  const client = openClient(flags, environment)
  showWhole(await client.request('GET', `/connect/${at(await client.namespace())}/${at(id)}`), flags, terminal)
}

export async function removeConnection(id: string, { flags, environment, terminal }: Asked): Promise<void> {
  const client = openClient(flags, environment)
  const removed = await client.request('DELETE', `/connect/${at(await client.namespace())}/${at(id)}`)
  tell(removed, flags, `${id} is deleted`, terminal)
}

/** A tool with the name by which it is called here: `CONNECTION.TOOL`. */
interface NamedTool {
  readonly name: string
  readonly tool: Answer
}

/** The tools of a connection, or of all of a namespace. Connections that cannot be asked are said on stderr. */
async function toolsOf(
  client: ApiClient,
  connection: string | undefined,
  { flags, terminal }: Asked,
): Promise<NamedTool[]> {
  const namespace = await client.namespace()
  const ids: string[] =
    connection === undefined
      ? (await allConnections(client, namespace)).connections.map(({ connectionId }: Answer) => connectionId)
      : [connection]
  const named: NamedTool[] = []
  for (const id of ids) {
    try {
      const { tools } = await client.request('GET', `/connect/${at(namespace)}/${at(id)}/.tools`)
      for (const tool of tools) named.push({ name: `${id}.${tool.name}`, tool })
    } catch (error) {
      if (connection !== undefined || !(error instanceof CommandError)) throw error
      const told = { connectionId: id, ...error.toJSON() }
      terminal.stderr(flags.json === true ? `${JSON.stringify(told)}\n` : `${id}: ${error.message}\n`)
    }
  }
  return named
}

export async function listTools(connection: string | undefined, asked: Asked): Promise<void> {
  showTools(await toolsOf(openClient(asked.flags, asked.environment), connection, asked), asked)
}

/** The best first; any of the words will do. */
export async function searchTools(words: readonly string[], asked: Asked): Promise<void> {
  const tools = await toolsOf(openClient(asked.flags, asked.environment), undefined, asked)
  const index = createWordIndex([3, 1])
  for (const { name, tool } of tools) {
    index.remove(name)
    index.add(name, [name, String(tool.description ?? '')].map(wordsOf))
  }
  const search = index.search(wordsOf(words.join(' ')), {
    most: 20,
    anyWord: true,
    isWanted: () => true,
  })
  let step = search.next()
  while (step.done !== true) step = search.next()
  const found = step.value.flatMap(({ id }) => tools.find(({ name }) => name === id) ?? [])
  showTools(found, asked)
}

function showTools(tools: readonly NamedTool[], { flags, terminal }: Asked): void {
  const body = { tools: tools.map(({ name, tool }) => ({ ...tool, name })) }
  const firstLine = (text: unknown) => String(text ?? '').split('\n')[0]
  const rows = tools.map(({ name, tool }) => [name, firstLine(tool.description)])
  show(body, flags, ['TOOL', 'DESCRIPTION'], rows, terminal)
}

/** `name`: `CONNECTION.TOOL`. `given`: JSON, `-` for stdin, or pairs. Resolves with the exit code. */
export async function callTool(name: string, given: readonly string[], asked: Asked): Promise<number> {
  const { flags, environment, terminal } = asked
  const dot = name.indexOf('.')
  if (dot < 1) throw new CommandError(`${name}: a tool is called CONNECTION.TOOL; see \`postern tool list\``, 2)
  const client = openClient(flags, environment)
  const path = `/connect/${at(await client.namespace())}/${at(name.slice(0, dot))}/.tools/${at(name.slice(dot + 1))}`
  const result = await client.request('POST', path, argumentsIn(given))
  if (flags.json === true) showWhole(result, flags, terminal)
  else
    for (const part of result.content ?? [])
      terminal.stdout(`${part.type === 'text' ? part.text : JSON.stringify(part)}\n`)
  return result.isError === true ? 1 : 0
}

function argumentsIn(given: readonly string[]): Answer {
  const [first] = given
  if (first === undefined) return {}
  if (first === '-') return readJsonFile('-')
  if (given.length === 1 && first.trimStart().startsWith('{')) {
    return parseJson(first, 'arguments')
  }
  return Object.fromEntries(Object.entries(pairs(given)).map(([key, text]) => [key, jsonOrText(text)]))
}

/** A number, a truth value, a list: what JSON can read. Other texts stand for themselves. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** `key=value` pairs. Throws CommandError 2. */
function pairs(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new CommandError(`${pair}: must be KEY=VALUE`, 2)
      return [pair.slice(0, equals), pair.slice(equals + 1)]
    }),
  )
}

/** `Name: value` lines. */
function readHeaders(file: string): Record<string, string> {
  const lines = readInput(file).toString().split('\n')
  return Object.fromEntries(
    lines
      .filter((line) => line.trim() !== '')
      .map((line, index) => {
        const colon = line.indexOf(':')
        if (colon < 1) throw new CommandError(`${file}:${index + 1}: must be "Name: value"`)
        return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
      }),
  )
}

export interface MintFlags {
  readonly policy?: string
  readonly organization?: string
  readonly namespaces?: readonly string[]
  readonly resources?: readonly string[]
  readonly operations?: readonly string[]
  readonly metadata?: readonly string[]
  readonly rpc?: readonly string[]
  readonly ttl?: string
}

/** Prints the token alone, so that a script can keep it. */
export async function mintToken(mint: MintFlags, { flags, environment, terminal }: Asked): Promise<void> {
  const { policy: file, organization, namespaces, resources, operations, metadata, rpc, ttl } = mint
  const constraint = {
    ...(namespaces && { namespaces }),
    ...(resources && { resources }),
    ...(operations && { operations }),
    ...(metadata && { metadata: pairs(metadata) }),
    ...(rpc && { rpcReqMatch: pairs(rpc) }),
    ...(ttl !== undefined && { ttl }),
  }
  const whole = file === undefined ? [] : [readJsonFile(file)].flat()
  const policy = [...whole, ...(Object.keys(constraint).length > 0 ? [constraint] : [])]
  const body = {
    ...(policy.length > 0 && { policy }),
    ...(organization !== undefined && { organizationId: organization }),
  }
  const minted = await openClient(flags, environment).request('POST', '/tokens', body)
  tell(minted, flags, minted.token, terminal)
}
