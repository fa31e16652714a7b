/**
 * Chooses a mocked tool's answer: the first matching recorded answer, or else an example from the output schema, or
 * else a generated value. Deterministic: the same server, scenario, tool and arguments (equal as JSON, regardless of
 * key order) give the same answer.
 */

import { isDeepStrictEqual } from 'node:util'
import { sliceCost } from '../../limits.ts'
import { defaultsIn } from '../../model/input-fields.ts'
import { rpcCodes } from '../../model/mcp.ts'
import { writingCanonical } from '../../schema/canonical-json.ts'
import type { Check } from '../../schema/json-schema.ts'
import { readingSchema } from '../../schema/json-schema.ts'
import type { JsonSchema } from '../../schema/schema-keywords.ts'
import type { MockAnswer, MockedCall } from './call.ts'
import { generating } from './generate-result.ts'

/** Cost of a character of checked arguments; 100 kB with `uniqueItems` take 35 ms. Past it: as for `sliceCost`. */
const checkedCharacterCost = 8

/** Ours: examples of an output schema that a mock chooses from. Past it: the others are left out. */
const examplesMax = 100

/**
 * Chooses as work in turns. Arguments that violate the input schema yield a result with `isError`. Problems of the
 * fixture yield an `error`. `givenChars`: about the length of the JSON of the arguments.
 */
export function* choosing(call: MockedCall, givenChars: number): Generator<number, MockAnswer> {
  const { server, scenario, tool, given } = call
  let check: Check
  try {
    check = yield* readingSchema(tool.inputSchema, 'arguments')
  } catch (error) {
    return errorResult(`the inputSchema of ${tool.name} cannot be used: ${(error as Error).message}`)
  }
  // A check cannot be interrupted; `schemaStepsMax` bounds it.
  yield givenChars * checkedCharacterCost
  const problem = check(given)
  // MCP since 2025-11-25: invalid arguments are a tool result, which the calling model can read and correct.
  if (problem !== undefined) return { delayMs: 0, result: { content: [text(problem)], isError: true } }

  const match = server.recorded.find((one) => one.tool === tool.name && holds(given, one.arguments ?? {}))
  if (match !== undefined) {
    const { result, error, delayMs = 0 } = match
    if (error !== undefined) return { delayMs, error }
    return { delayMs, result: { ...contentFor(result?.['structuredContent']), ...result } }
  }

  const scenarioText = scenario === '' ? (tool.description ?? tool.name) : scenario
  const { outputSchema } = tool as { outputSchema?: JsonSchema }
  if (outputSchema === undefined) return { delayMs: 0, result: { content: [text(`${tool.name}: ${scenarioText}`)] } }
  const canonical = yield* writingCanonical(given)
  const seed = Bun.hash.xxHash32([server.detail.qualifiedName, scenario, tool.name, canonical].join('\0'))
  let fits: Check
  try {
    fits = yield* readingSchema(outputSchema, 'result')
  } catch (error) {
    return errorResult(`the outputSchema of ${tool.name} cannot be used: ${(error as Error).message}`)
  }
  const { examples } = outputSchema
  const good: unknown[] = []
  for (const example of Array.isArray(examples) ? examples.slice(0, examplesMax) : []) {
    // A check may take some forty milliseconds.
    yield sliceCost
    if (fits(example) === undefined) good.push(example)
  }
  const desired = { schema: outputSchema, seed, given: { ...defaultsIn(tool.inputSchema), ...given }, scenarioText }
  const value = good.length > 0 ? good[seed % good.length] : yield* generating(desired, fits)
  if (value === undefined) {
    return errorResult(`no result that fits the outputSchema of ${tool.name} was found: record an answer in a fixture`)
  }
  return { delayMs: 0, result: { ...contentFor(value), structuredContent: value } }
}

/** For a mistake in the fixture, not in the call. */
function errorResult(message: string): MockAnswer {
  return { delayMs: 0, error: { code: rpcCodes.internal, message } }
}

function text(words: string) {
  return { type: 'text', text: words }
}

/** Structured content as text, for clients that do not support structured content. */
function contentFor(structured: unknown): { content: object[] } {
  return { content: structured === undefined ? [] : [text(JSON.stringify(structured))] }
}

/** Whether the value matches: objects must have at least the wanted fields; lists and scalars must be equal. */
function holds(value: unknown, wanted: unknown): boolean {
  // Not by their texts: thousands of recorded answers may be compared with a megabyte.
  if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) return isDeepStrictEqual(value, wanted)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(wanted).every(
    ([name, part]) => Object.hasOwn(value, name) && holds((value as Record<string, unknown>)[name], part),
  )
}
