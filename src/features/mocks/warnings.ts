/** Warnings about fixtures that load, but that a mock could not use or that clients would not accept. */

import { specTypeSchemas } from '@modelcontextprotocol/server'
import type { RecordedAnswer } from '../../model/recorded-answer.ts'
import type { ServerDetail } from '../../model/server.ts'
import { placeOf } from '../../schema/check.ts'
import { type Check, checkOf, UnknownPattern } from '../../schema/json-schema.ts'
import type { JsonSchema } from '../../schema/schema-keywords.ts'

/** The content types of MCP. */
const contentTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

export interface MockAdvice {
  /** The warning: `a.json: mocks[0].result (acme/notes/search): what is wrong`. */
  readonly line: string
  /** True: certainly a mistake. False: possibly intended. */
  readonly isWrong: boolean
}

/** `places`: where each server and each recorded answer stands, as `file: path`. */
export interface MockFixtures {
  readonly servers: readonly ServerDetail[]
  readonly mocks: readonly RecordedAnswer[]
  readonly places: ReadonlyMap<object, string>
}

/** Checks the schemas of all tools, and each recorded answer against its tool's schemas. */
export function lintMocks({ servers, mocks, places }: MockFixtures): MockAdvice[] {
  const advice: MockAdvice[] = []
  const wrong = (line: string) => void advice.push({ line, isWrong: true })
  const doubtful = (line: string) => void advice.push({ line, isWrong: false })
  const inputs = new Map<string, JsonSchema>()
  const outputs = new Map<string, Check>()
  for (const server of servers) {
    for (const [index, tool] of (server.tools ?? []).entries()) {
      const { outputSchema } = tool as { outputSchema?: JsonSchema }
      const name = `${server.qualifiedName}/${tool.name}`
      const lineOf = (field: string, what: string) =>
        `${places.get(server)}.tools[${index}].${field} (${name}): cannot be used${what}`
      inputs.set(name, tool.inputSchema)
      const input = tryCheck(tool.inputSchema, 'arguments')
      if (input instanceof Error) wrong(lineOf('inputSchema', `: ${input.message}`))
      if (outputSchema === undefined) continue
      const output = tryCheck(outputSchema, 'result')
      if (output instanceof Error) {
        // A pattern that RE2 does not support is still valid JSON Schema, so it is not reported as a mistake.
        const say = output instanceof UnknownPattern ? doubtful : wrong
        say(lineOf('outputSchema', `, so only recorded answers are given: ${output.message}`))
      } else outputs.set(name, output)
    }
  }
  for (const mock of mocks) {
    const { server, tool, result, arguments: wanted } = mock
    const name = `${server}/${tool}`
    const lineOf = (path: string, what: string) => `${places.get(mock)}.${path} (${name}): ${what}`
    const impossible = wanted === undefined ? undefined : impossibleArguments(wanted, inputs.get(name))
    if (impossible !== undefined) doubtful(lineOf('arguments', `no call can have these: ${impossible}`))
    if (result === undefined) continue
    const { content, structuredContent, isError } = result
    const say = (path: string, what: string) => wrong(lineOf(path, what))
    const check = isError === true ? undefined : outputs.get(name)
    if (check !== undefined && structuredContent === undefined)
      say('result', 'has no structuredContent, and the tool has an outputSchema')
    const problem = structuredContent === undefined ? undefined : check?.(structuredContent)
    if (problem !== undefined) say('result.structuredContent', `does not fit the outputSchema: ${problem}`)
    if (content === undefined && structuredContent === undefined)
      say('result', 'has neither content nor structuredContent')
    const odd = Array.isArray(content) ? content.findIndex((block) => !contentTypes.has(String(block?.type))) : -1
    if (Array.isArray(content) && odd >= 0) {
      const type = JSON.stringify(content[odd]?.type)
      say(`result.content[${odd}]`, `is content of type ${type}; MCP knows ${[...contentTypes].join(', ')}`)
    } else
      for (const place of invalidResultPaths(result)) say(`result.${place}`, 'does not fit MCP’s schema of a result')
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

function tryCheck(...asked: Parameters<typeof checkOf>): Check | Error {
  try {
    return checkOf(...asked)
  } catch (error) {
    return error as Error
  }
}

/** Why no valid call can have these recorded arguments, or more; undefined if one can. The schema is relaxed first. */
function impossibleArguments(wanted: object, schema: JsonSchema | undefined) {
  if (schema === undefined) return undefined
  const check = tryCheck(partialSchema(schema) as JsonSchema, 'arguments')
  return check instanceof Error ? undefined : check(wanted)
}

/** Keywords that a part of a valid value can violate: they require something, or are not monotonic. */
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
