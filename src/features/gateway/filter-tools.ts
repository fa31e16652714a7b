/**
 * Filters `tools/list` responses: removes the tools that the token could never call, and keeps everything else. Also
 * the bounded JSON parser for all upstream responses that the gateway inspects.
 */

import { PlatformError } from '../../errors.ts'
import { parsedResponseCharsMax } from '../../limits.ts'
import type { Block } from '../../policy/block.ts'
import { couldCall, toolRules } from '../../policy/tools.ts'
import { parsingExactly, parsingWithin } from '../../schema/json.ts'

/** Ours: keys of all objects in a parsed response; twice as many took 100 ms to parse. Past it: 502. */
export const parsedResponseKeysMax = 40_000
/** Ours: values in the objects and arrays of a parsed response. Past it: 502. */
export const parsedResponseValuesMax = 200_000
/** Ours: nesting of a parsed response; nested schemas have some tens of levels, and a response with a hundred thousand took a second to write. Past it: 502. */
export const parsedResponseDepthMax = 500
/** Ours: total cost of narrowing one list of tools, about 600 ms in turns; enough for 3,000 tools with ordinary names and patterns. Past it: 502. */
export const narrowingCostMax = 15_000_000

/**
 * The message without the hidden tools, and without those that are not accepted (`features/pins`). It is always
 * serialized again: the client's parser might find another list in the original text than ours did. A generator that
 * yields the cost of each step before taking it (turns.ts). Throws SyntaxError if the text is not a JSON object, and
 * PlatformError `upstream_error` if the list is too large.
 */
export function* filterTools(
  text: string,
  blocks: readonly Block[],
  isAccepted?: (name: string) => boolean,
): Generator<number, string> {
  // An event may carry only an id, without data.
  if (text === '') return text
  // Names alone are looked at; bounds in schemas keep their digits. Where definitions are pinned, what is shown is what
  // was hashed.
  const message = yield* parsingResponse(text, isAccepted === undefined ? parsingExactly : parsingWithin)
  if (typeof message !== 'object' || message === null || Array.isArray(message)) throw new SyntaxError('not an object')
  const { result } = message as { result?: unknown }
  const isList = typeof result === 'object' && result !== null && Object.hasOwn(result, 'tools')
  if (!isList) return JSON.stringify(message)
  const { tools } = result as { tools: unknown }
  // An entry without a name cannot be called.
  const isNamed = (one: { readonly name?: unknown } | null) =>
    typeof one?.name === 'string' && isAccepted?.(one.name) !== false
  const named = Array.isArray(tools) ? tools.filter(isNamed) : []
  const shown = yield* narrowed(named, ({ name }) => name, blocks)
  // Each token gets its own list, so a shared cache must not store this one for other callers.
  const own = { ...result, tools: shown, ...('cacheScope' in result && { cacheScope: 'private' }) }
  return JSON.stringify({ ...message, result: own })
}

/**
 * Parses an upstream's message, as work in steps. Throws SyntaxError if it is not JSON, and PlatformError
 * `upstream_error` if it exceeds the `parsedResponse…` limits: parsing it would block the event loop.
 */
export function* parsingResponse(text: string, parse = parsingWithin): Generator<number, unknown> {
  const read = text.length > parsedResponseCharsMax ? undefined : yield* parse(text, parsedResponseBounds)
  if (read !== undefined) return read.value
  throw tooLargeToParse()
}

export const tooLargeToParse = () =>
  new PlatformError(
    'upstream_error',
    'The MCP server’s response is too large or too deeply nested for postern to read: let the server list or send less',
  )

/** The same, for the parser. */
export const parsedResponseBounds = {
  keysMax: parsedResponseKeysMax,
  valuesMax: parsedResponseValuesMax,
  depthMax: parsedResponseDepthMax,
}

/**
 * The tools that a token of these blocks could call, as work in steps. Throws PlatformError `upstream_error` where
 * asking costs more than `narrowingCostMax` in all.
 */
export function* narrowed<T>(
  tools: readonly T[],
  nameOf: (tool: T) => string,
  blocks: readonly Block[],
): Generator<number, T[]> {
  const rules = toolRules(blocks)
  const found: T[] = []
  let left = narrowingCostMax
  for (const tool of tools) {
    const asking = couldCall(rules, nameOf(tool))
    let step = asking.next()
    for (; !step.done; step = asking.next()) {
      left -= step.value
      if (left < 0)
        throw new PlatformError(
          'upstream_error',
          'The MCP server lists too many tools for this token’s patterns: mint a token with fewer or simpler patterns',
        )
      yield step.value
    }
    if (step.value) found.push(tool)
  }
  return found
}
