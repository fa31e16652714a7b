/** What a mock could not do with its fixtures: nothing that keeps them from being loaded, and nothing that is right. */

import { specTypeSchemas } from '@modelcontextprotocol/server'
import { placeOf } from '../model/check.ts'
import type { RecordedAnswer } from '../model/recorded-answer.ts'
import type { ServerDetail } from '../model/server.ts'
import { type Check, checkOf, type JsonSchema } from './schema.ts'

/** The kinds of content that MCP has. */
const contentTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link'])

/** A line for each, with its place in words. */
export function mockAdvice(servers: readonly ServerDetail[], mocks: readonly RecordedAnswer[]): string[] {
  const advice: string[] = []
  const outputs = new Map<string, Check>()
  for (const { qualifiedName, tools } of servers) {
    for (const tool of tools ?? []) {
      const { outputSchema } = tool as { outputSchema?: JsonSchema }
      const place = `${qualifiedName} ${tool.name}`
      tryCheck(tool.inputSchema, 'arguments', (why) => advice.push(`${place}: the inputSchema cannot be used: ${why}`))
      if (outputSchema === undefined) continue
      const check = tryCheck(outputSchema, 'result', (why) =>
        advice.push(`${place}: the outputSchema cannot be used, so only recorded answers are given: ${why}`),
      )
      if (check !== undefined) outputs.set(place, check)
    }
  }
  const counts = new Map<string, number>()
  for (const { server, tool, result } of mocks) {
    const place = `${server} ${tool}`
    const count = (counts.get(place) ?? 0) + 1
    counts.set(place, count)
    if (result === undefined) continue
    const { content, structuredContent, isError } = result
    const say = (what: string) => advice.push(`${place}: recorded answer ${count}: ${what}`)
    const check = isError === true ? undefined : outputs.get(place)
    if (check !== undefined && structuredContent === undefined)
      say('has no structuredContent, and the tool has an outputSchema')
    const problem = structuredContent === undefined ? undefined : check?.(structuredContent)
    if (problem !== undefined) say(`structuredContent does not fit the outputSchema: ${problem}`)
    if (content === undefined && structuredContent === undefined) say('has neither content nor structuredContent')
    const odd = Array.isArray(content) && content.find((block) => !contentTypes.has(String(block?.type)))
    if (odd) say(`content has a block of type ${JSON.stringify(odd.type)}; MCP knows ${[...contentTypes].join(', ')}`)
    else for (const place of strangeIn(result)) say(`${place} is not as MCP has it`)
  }
  return advice
}

/** Where a result is not one that MCP clients would take. */
function strangeIn(result: object): string[] {
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
  onFailure: (why: string) => void,
): Check | undefined {
  try {
    return checkOf(schema, name, { isStrict: true })
  } catch (error) {
    onFailure((error as Error).message)
    return undefined
  }
}
