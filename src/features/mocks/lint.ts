/** What a mock could not do with its fixtures: nothing that keeps them from being loaded, and nothing that is right. */

import { specTypeSchemas } from '@modelcontextprotocol/server'
import type { RecordedAnswer } from '../../model/recorded-answer.ts'
import type { ServerDetail } from '../../model/server.ts'
import { placeOf } from '../../schema/check.ts'
import { type Check, checkOf, type JsonSchema, UnknownPattern } from './argument-schema.ts'

/** The kinds of content that MCP has. */
const contentTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

export interface MockAdvice {
  /** With its place in words. */
  readonly line: string
  /** Wrong for every client; else it may be meant so. */
  readonly isWrong: boolean
}

export function lintMocks(servers: readonly ServerDetail[], mocks: readonly RecordedAnswer[]): MockAdvice[] {
  const advice: MockAdvice[] = []
  const wrong = (line: string) => void advice.push({ line, isWrong: true })
  const doubtful = (line: string) => void advice.push({ line, isWrong: false })
  const inputs = new Map<string, JsonSchema>()
  const outputs = new Map<string, Check>()
  for (const { qualifiedName, tools } of servers) {
    for (const tool of tools ?? []) {
      const { outputSchema } = tool as { outputSchema?: JsonSchema }
      const place = `${qualifiedName} ${tool.name}`
      inputs.set(place, tool.inputSchema)
      tryCheck(tool.inputSchema, 'arguments', (why) => wrong(`${place}: the inputSchema cannot be used: ${why}`))
      if (outputSchema === undefined) continue
      const check = tryCheck(outputSchema, 'result', (why, error) => {
        // A pattern that RE2 does not know is good JSON Schema, and no fault of whoever mocks the tool.
        const say = error instanceof UnknownPattern ? doubtful : wrong
        say(`${place}: the outputSchema cannot be used, so only recorded answers are given: ${why}`)
      })
      if (check !== undefined) outputs.set(place, check)
    }
  }
  const counts = new Map<string, number>()
  for (const { server, tool, result, arguments: wanted } of mocks) {
    const place = `${server} ${tool}`
    const count = (counts.get(place) ?? 0) + 1
    counts.set(place, count)
    const impossible = wanted === undefined ? undefined : impossibleArguments(wanted, inputs.get(place))
    if (impossible !== undefined) {
      doubtful(`${place}: recorded answer ${count}: no call can have these arguments: ${impossible}`)
    }
    if (result === undefined) continue
    const { content, structuredContent, isError } = result
    const say = (what: string) => wrong(`${place}: recorded answer ${count}: ${what}`)
    const check = isError === true ? undefined : outputs.get(place)
    if (check !== undefined && structuredContent === undefined)
      say('has no structuredContent, and the tool has an outputSchema')
    const problem = structuredContent === undefined ? undefined : check?.(structuredContent)
    if (problem !== undefined) say(`structuredContent does not fit the outputSchema: ${problem}`)
    if (content === undefined && structuredContent === undefined) say('has neither content nor structuredContent')
    const odd = Array.isArray(content) && content.find((block) => !contentTypes.has(String(block?.type)))
    if (odd) say(`content has a block of type ${JSON.stringify(odd.type)}; MCP knows ${[...contentTypes].join(', ')}`)
    else for (const place of invalidResultPaths(result)) say(`${place} is not as MCP has it`)
  }
  return advice
}

/** Where a result is not one that MCP clients would take. */
function invalidResultPaths(result: object): string[] {
  const checked = specTypeSchemas.CallToolResult['~standard'].validate(result)
  // The package answers at once; its interface leaves room for others.
  if (checked instanceof Promise || checked.issues === undefined) return []
  return checked.issues.map(({ path = [] }) =>
    placeOf(path.map((part) => (typeof part === 'object' ? part.key : part)) as (string | number)[]),
  )
}

function tryCheck(
  schema: JsonSchema,
  name: 'arguments' | 'result',
  onFailure: (why: string, error: unknown) => void,
): Check | undefined {
  try {
    return checkOf(schema, name, { isStrict: true })
  } catch (error) {
    onFailure((error as Error).message, error)
    return undefined
  }
}

/**
 * Why no call that the schema takes holds these arguments; undefined where one may. A call may hold more than is
 * recorded.
 */
function impossibleArguments(wanted: object, schema: JsonSchema | undefined): string | undefined {
  if (schema === undefined) return undefined
  const check = tryCheck(partialSchema(schema) as JsonSchema, 'arguments', () => {})
  return check?.(wanted)
}

/** Keywords that ask for more than is there, or of which a part may hold where the whole does not. */
const wholes = new Set([
  ...['required', 'minProperties', 'dependentRequired', 'dependentSchemas', 'dependencies', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else', 'oneOf'],
])
/** Keywords whose value is schemas by name. */
const named = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/** A schema that takes every part of what this one takes, and perhaps more. */
function partialSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(partialSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const wide: Record<string, unknown> = Object.create(null)
  for (const [keyword, value] of Object.entries(schema)) {
    if (wholes.has(keyword)) continue
    const isValue = keyword === 'const' || keyword === 'enum'
    if (isValue) {
      if ([value].flat().every((one) => typeof one !== 'object' || one === null)) wide[keyword] = value
    } else if (named.has(keyword) && typeof value === 'object' && value !== null) {
      wide[keyword] = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, partialSchema(part)]))
    } else wide[keyword] = partialSchema(value)
  }
  return wide
}
