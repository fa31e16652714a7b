/** `postern tool`: the tools of a namespace's connections. */

import { type Static, Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import { CommandError } from '../../errors.ts'
import { jsonDepthMax } from '../../limits.ts'
import { oneLine } from '../../ops/escape-control.ts'
import { readJson } from '../../schema/json.ts'
import { OptionalText } from '../../schema/shapes.ts'
import { drained } from '../../schema/steps.ts'
import { createWordIndex } from '../../search/word-index.ts'
import { wordsOf } from '../../search/words.ts'
import { countText } from '../count-text.ts'
import { parseJson, readJsonFile, readPairs } from '../json-input.ts'
import { group } from '../options.ts'
import { allConnections, noConnection, pathSegment } from './api-client.ts'
import type { CommandContext, RemoteCommands } from './context.ts'

/** The fields of a tool's definition that the commands read. `name`: by which it is called here, `CONNECTION.TOOL`. */
const Tool = Type.Object({ name: Type.String(), description: Type.Optional(Type.Unknown()) })
type Tool = Static<typeof Tool>

/** The fields of a part of a `CallToolResult` of MCP that the commands read. `data` and `blob` are in base64. */
const bytes = { mimeType: OptionalText, data: OptionalText, blob: OptionalText }
const Content = Type.Object({
  type: Type.String(),
  text: OptionalText,
  ...bytes,
  resource: Type.Optional(Type.Object(bytes)),
})
const ToolResult = Type.Object({
  content: Type.Optional(Type.Array(Content)),
  isError: Type.Optional(Type.Boolean()),
})

/** Connections whose failures a list tells one by one. Past it: the list tells how many more failed. */
const toldMax = 3

export function addToolCommands(postern: Command, { inNamespace }: RemoteCommands): void {
  const tool = group(postern, 'tool').description('list, search and call tools')
  inNamespace(tool, 'list', 'list the tools of a namespace')
    .argument('[connection]', 'only the tools of this connection')
    .run(async (context, connection?: string) => showTools(await toolsOf(context, connection), context))
  inNamespace(tool, 'search', 'search the tools of a namespace')
    .argument('<words...>', 'what to search for')
    .run(searchTools)
  inNamespace(tool, 'call', 'call a tool and print its result; exit with code 1 if the tool reports an error')
    .argument('<tool>', 'the name of the tool: CONNECTION.TOOL')
    .argument('[arguments...]', 'JSON, - for stdin, or KEY=VALUE pairs')
    .addHelpText('after', callHelp)
    .run(callTool)
}

/** Servers say in many ways that they wanted a text. */
const numberHint = `A value that looks like a number is sent as one. To send it as a text: id='"7"'\n`

const callHelp = `
In a pair, postern sends a value that is JSON as JSON, and any other value as text: days=3 is a number, and id='"7"' is
a text.`

/** The tools of a connection, or of all of a namespace. Connections that cannot be asked are reported on stderr. */
async function toolsOf(context: CommandContext, connection?: string): Promise<Tool[]> {
  const { flags, request, stderr } = context
  const namespace = await context.namespace()
  const ids = connection === undefined ? await connectionIds(context, namespace) : [connection]
  const named: Tool[] = []
  let failed = 0
  for (const id of ids) {
    try {
      const path = `/connect/${pathSegment(namespace)}/${pathSegment(id)}/.tools`
      const reads = Type.Object({ tools: Type.Array(Tool) })
      const { tools } = await request('GET', path, { ...noConnection(namespace, id), reads })
      for (const tool of tools) named.push({ ...tool, name: `${id}.${tool.name}` })
    } catch (error) {
      if (connection !== undefined || !(error instanceof CommandError)) throw error
      const told = { connectionId: id, ...error.toJSON() }
      if (flags.json === true) stderr(`${JSON.stringify(told)}\n`)
      else if (failed < toldMax) stderr(`${oneLine(id)}: ${error.message}\n`)
      failed += 1
    }
  }
  if (failed > toldMax && flags.json !== true)
    stderr(
      `${countText(failed - toldMax, 'more connection')} failed: see \`postern connection list -n ${namespace}\`\n`,
    )
  const all = ids.length === 1 ? ids[0] : `all ${ids.length} connections`
  if (failed > 0 && failed === ids.length) throw new CommandError(`could not list tools: ${all} failed`)
  return named
}

async function connectionIds(context: CommandContext, namespace: string): Promise<string[]> {
  try {
    return (await allConnections(context, namespace)).connections.map(({ connectionId }) => connectionId)
  } catch (error) {
    if (!(error instanceof CommandError) || error.status !== 403) throw error
    throw error.with(
      `${error.message}; this credential may not list connections: name one, as in \`postern tool list CONNECTION\``,
    )
  }
}

/** The best first; any of the words will do. */
async function searchTools(context: CommandContext, words: readonly string[]): Promise<void> {
  const tools = await toolsOf(context)
  const index = createWordIndex([3, 1])
  for (const { name, description } of tools) {
    index.remove(name)
    index.add(name, [name, descriptionOf(description)].map(wordsOf))
  }
  const options = { most: 20, anyWord: true, isWanted: () => true }
  const hits = drained(index.search(wordsOf(words.join(' ')), options))
  const found = hits.flatMap(({ id }) => tools.find(({ name }) => name === id) ?? [])
  showTools(found, context)
}

/** A server writes it, and may write something else. */
const descriptionOf = (description: unknown) => (typeof description === 'string' ? description : '')

function showTools(tools: readonly Tool[], { show }: CommandContext): void {
  const rows = tools.map(({ name, description }) => [name, descriptionOf(description).split('\n')[0]])
  show({ tools }, ['TOOL', 'DESCRIPTION'], rows)
}

/** `name`: `CONNECTION.TOOL`. `given`: JSON, `-` for stdin, or pairs. Resolves with the exit code. */
export async function callTool(context: CommandContext, name: string, given: readonly string[]): Promise<number> {
  if (!/^[^.]+\../.test(name))
    throw new CommandError(
      `${name}: is not a tool’s name: use CONNECTION.TOOL, like weather.get_forecast; \`postern tool list\` shows them`,
      2,
    )
  const namespace = await context.namespace()
  const id = await connectionIn(name, context, namespace)
  const tool = name.slice(id.length + 1)
  const path = `/connect/${pathSegment(namespace)}/${pathSegment(id)}/.tools/${pathSegment(tool)}`
  const options = { ...noConnection(namespace, id), body: argumentsIn(given), reads: ToolResult }
  const result = await context.request('POST', path, options)
  if (result.isError === true && given.some((pair) => /=-?\d/.test(pair))) context.stderr(numberHint)
  if (context.flags.json === true) context.print(result)
  else for (const part of result.content ?? []) context.stdout(`${textOf(part)}\n`)
  return result.isError === true ? 1 : 0
}

/** A part of a result for people: bytes as what they are and how many. `--json` prints them. */
function textOf(part: Static<typeof Content>): string {
  if (part.type === 'text') return part.text ?? ''
  const { mimeType = part.type, data, blob = data } = part.resource ?? part
  if (blob === undefined) return JSON.stringify(part)
  const bytes = Buffer.byteLength(blob, 'base64')
  return `[${mimeType}, ${bytes < 1000 ? `${bytes} bytes` : `${Math.round(bytes / 1000)} kB`}]`
}

/** The connection in `CONNECTION.TOOL`: both may have dots, and the longest id there is counts. */
async function connectionIn(name: string, context: CommandContext, namespace: string): Promise<string> {
  const [first = '', ...rest] = name.split('.')
  if (rest.length === 1) return first
  // A token may call tools and not list connections: then the first dot divides.
  const { connections } = await allConnections(context, namespace).catch(() => ({ connections: [] }))
  const ids = connections.map(({ connectionId }) => connectionId).filter((id) => name.startsWith(`${id}.`))
  return ids.reduce((longest, id) => (id.length > longest.length ? id : longest), first)
}

function argumentsIn(given: readonly string[]): unknown {
  const [first] = given
  if (first === undefined) return {}
  if (first === '-') return readJsonFile('-')
  if (given.length === 1 && first.trimStart().startsWith('{')) return parseJson(first, 'arguments')
  return Object.fromEntries(Object.entries(readPairs(given)).map(([key, text]) => [key, jsonOrText(text)]))
}

/** Reads a text as JSON, unless that would fail or change a number. Then the text stands for itself. */
function jsonOrText(text: string): unknown {
  const read = readJson(text, { depthMax: jsonDepthMax, numbers: 'exact' })
  return 'problem' in read ? text : read.value
}
