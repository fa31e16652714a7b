/** `postern tool`: the tools of a namespace's connections. */

import { CommandError } from '../../errors.ts'
import { jsonDepthMax } from '../../limits.ts'
import { readJson } from '../../schema/json.ts'
import { createWordIndex } from '../../search/word-index.ts'
import { wordsOf } from '../../search/words.ts'
import { parseJson, readJsonFile } from '../json-input.ts'
import { type ApiClient, allConnections, type CommandContext, openClient, pathSegment } from './api-client.ts'
import { noConnection } from './missing.ts'
import { printJson, printTable } from './output.ts'
import { readPairs } from './pairs.ts'

/** The fields of a tool's definition that the commands read. */
interface Tool {
  readonly name: string
  readonly description?: string | null
}

/** The fields of a `CallToolResult` of MCP that the commands read. */
interface ToolResult {
  readonly content?: readonly Content[]
  readonly isError?: boolean
}

interface Content extends Data {
  readonly type: string
  readonly text?: string
  /** Of a resource in the result. */
  readonly resource?: Data
}

/** Bytes in base64. */
interface Data {
  readonly mimeType?: string
  readonly data?: string
  readonly blob?: string
}

/** A tool with the name by which it is called here: `CONNECTION.TOOL`. */
interface NamedTool {
  readonly name: string
  readonly tool: Tool
}

/** The tools of a connection, or of all of a namespace. Connections that cannot be asked are reported on stderr. */
async function toolsOf(
  client: ApiClient,
  connection: string | undefined,
  { flags, terminal }: CommandContext,
): Promise<NamedTool[]> {
  const namespace = await client.namespace()
  const ids = connection === undefined ? await connectionIds(client, namespace) : [connection]
  const named: NamedTool[] = []
  let failed = 0
  for (const id of ids) {
    try {
      const { tools } = await client.request<{ tools: readonly Tool[] }>(
        'GET',
        `/connect/${pathSegment(namespace)}/${pathSegment(id)}/.tools`,
      )
      for (const tool of tools) named.push({ name: `${id}.${tool.name}`, tool })
    } catch (error) {
      if (connection !== undefined || !(error instanceof CommandError)) throw error
      const told = { connectionId: id, ...error.toJSON() }
      terminal.stderr(flags.json === true ? `${JSON.stringify(told)}\n` : `${id}: ${error.message}\n`)
      failed += 1
    }
  }
  if (failed > 0 && failed === ids.length) throw new CommandError('no connection could be asked for its tools')
  return named
}

async function connectionIds(client: ApiClient, namespace: string): Promise<string[]> {
  try {
    return (await allConnections(client, namespace)).connections.map(({ connectionId }) => connectionId)
  } catch (error) {
    if (!(error instanceof CommandError) || error.status !== 403) throw error
    const message = `${error.message}. It may not list connections: name one, \`postern tool list CONNECTION\``
    throw new CommandError(message, 1, { code: error.code, status: error.status })
  }
}

export async function listTools(connection: string | undefined, context: CommandContext): Promise<void> {
  showTools(await toolsOf(openClient(context.flags, context.environment), connection, context), context)
}

/** The best first; any of the words will do. */
export async function searchTools(words: readonly string[], context: CommandContext): Promise<void> {
  const tools = await toolsOf(openClient(context.flags, context.environment), undefined, context)
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
  showTools(found, context)
}

function showTools(tools: readonly NamedTool[], { flags, terminal }: CommandContext): void {
  const body = { tools: tools.map(({ name, tool }) => ({ ...tool, name })) }
  const firstLine = (text: unknown) => String(text ?? '').split('\n')[0]
  const rows = tools.map(({ name, tool }) => [name, firstLine(tool.description)])
  printTable(body, flags, { heading: ['TOOL', 'DESCRIPTION'], rows: rows }, terminal)
}

/** `name`: `CONNECTION.TOOL`. `given`: JSON, `-` for stdin, or pairs. Resolves with the exit code. */
export async function callTool(name: string, given: readonly string[], context: CommandContext): Promise<number> {
  const { flags, environment, terminal } = context
  if (!/^[^.]+\../.test(name))
    throw new CommandError(`${name}: a tool is called CONNECTION.TOOL; see \`postern tool list\``, 2)
  const client = openClient(flags, environment)
  const namespace = await client.namespace()
  const id = await connectionIn(name, client, namespace)
  const tool = name.slice(id.length + 1)
  const path = `/connect/${pathSegment(namespace)}/${pathSegment(id)}/.tools/${pathSegment(tool)}`
  const result = await client.request<ToolResult>('POST', path, {
    ...noConnection(namespace, id),
    body: argumentsIn(given),
  })
  if (flags.json === true) printJson(result, flags, terminal)
  else for (const part of result.content ?? []) terminal.stdout(`${textOf(part)}\n`)
  return result.isError === true ? 1 : 0
}

/** A part of a result for people: bytes as what they are and how many. `--json` prints them. */
function textOf(part: Content): string {
  if (part.type === 'text') return part.text ?? ''
  const { mimeType = part.type, data, blob = data } = part.resource ?? part
  if (blob === undefined) return JSON.stringify(part)
  const bytes = Buffer.byteLength(blob, 'base64')
  return `[${mimeType}, ${bytes < 1000 ? `${bytes} bytes` : `${Math.round(bytes / 1000)} kB`}]`
}

/** The connection in `CONNECTION.TOOL`: both may have dots, and the longest id there is counts. */
async function connectionIn(name: string, client: ApiClient, namespace: string): Promise<string> {
  const [first = '', ...rest] = name.split('.')
  if (rest.length === 1) return first
  // A token may call tools and not list connections: then the first dot divides.
  const { connections } = await allConnections(client, namespace).catch(() => ({ connections: [] }))
  const ids = connections.map(({ connectionId }) => connectionId).filter((id) => name.startsWith(`${id}.`))
  return ids.reduce((longest, id) => (id.length > longest.length ? id : longest), first)
}

function argumentsIn(given: readonly string[]): unknown {
  const [first] = given
  if (first === undefined) return {}
  if (first === '-') return readJsonFile('-')
  if (given.length === 1 && first.trimStart().startsWith('{')) {
    return parseJson(first, 'arguments')
  }
  return Object.fromEntries(Object.entries(readPairs(given)).map(([key, text]) => [key, jsonOrText(text)]))
}

/** Reads a text as JSON, unless that would fail or change a number. Then the text stands for itself. */
function jsonOrText(text: string): unknown {
  const read = readJson(text, { depthMax: jsonDepthMax, numbers: 'exact' })
  return 'problem' in read ? text : read.value
}
