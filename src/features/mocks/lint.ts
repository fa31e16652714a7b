/** Warnings about fixtures that load, but that a mock could not use or that clients would not accept. */

import { specTypeSchemas } from '@modelcontextprotocol/server'
import type { RecordedAnswer } from '../../model/recorded-answer.ts'
import type { ServerDetail } from '../../model/server.ts'
import { placeOf } from '../../schema/check.ts'
import { type Check, checkOf, type JsonSchema, UnknownPattern } from '../../schema/json-schema.ts'

/** The content types of MCP. */
const contentTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

export interface MockAdvice {
  /** The warning, beginning with the server and tool that it is about. */
  readonly line: string
  /** True: certainly a mistake. False: possibly intended. */
  readonly isWrong: boolean
}

/** Checks the schemas of all tools, and each recorded answer against its tool's schemas. */
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
        // A pattern that RE2 does not support is still valid JSON Schema, so it is not reported as a mistake.
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

/** The paths at which a result violates MCP's own schema. */
function invalidResultPaths(result: object): string[] {
  const checked = specTypeSchemas.CallToolResult['~standard'].validate(result)
  // The package validates synchronously; only its interface also allows a promise.
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
 * Why no valid call can match these recorded arguments; undefined if one can. A call may have more arguments than were
 * recorded, so the schema is relaxed first.
 */
function impossibleArguments(wanted: object, schema: JsonSchema | undefined): string | undefined {
  if (schema === undefined) return undefined
  const check = tryCheck(partialSchema(schema) as JsonSchema, 'arguments', () => {})
  return check?.(wanted)
}

/**
 * Keywords that a part of a valid value can violate: they require something to be present, or they are not monotonic.
 */
const wholes = new Set([
  ...['required', 'minProperties', 'dependentRequired', 'dependentSchemas', 'dependencies', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else', 'oneOf'],
])
/** Keywords whose value is an object of schemas by name. */
const named = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/** A schema that accepts every part of every value that the given one accepts, and possibly more. */
function partialSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(partialSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const wide: Record<string, unknown> = Object.create(null)
  for (const [keyword, value] of Object.entries(schema)) {
    if (wholes.has(keyword)) continue
    const isValue = keyword === 'const' || keyword === 'enum'
    if (isValue) {
      // Scalars only: a recorded object need only be a part of the required one.
      if ([value].flat().every((one) => typeof one !== 'object' || one === null)) wide[keyword] = value
    } else if (named.has(keyword) && typeof value === 'object' && value !== null) {
      wide[keyword] = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, partialSchema(part)]))
    } else wide[keyword] = partialSchema(value)
  }
  return wide
}
