/** `tools/list` answers, without the tools that the token could never call. Everything else in them stays. */

import { PlatformError } from '../../errors.ts'
import {
  narrowingCostMax,
  parsedResponseCharsMax,
  parsedResponseDepthMax,
  parsedResponseKeysMax,
  parsedResponseValuesMax,
} from '../../limits.ts'
import type { Block } from '../../policy/block.ts'
import { type ToolRules, toolRules, toolVerdict } from '../../policy/tools.ts'
import { parseWithin, reading } from '../../schema/json.ts'

/**
 * The message with fewer tools, written anew: another reader of its text might find another list in it. In steps:
 * yields what the next one costs before it is taken. Throws SyntaxError for what is no JSON object, and PlatformError
 * `upstream_error` for a list that is too large.
 */
export function* filterTools(text: string, blocks: readonly Block[]): Generator<number, string> {
  // Events may be there for their id alone.
  if (text === '') return text
  const message = yield* parseWork(text)
  if (typeof message !== 'object' || message === null || Array.isArray(message)) throw new SyntaxError('not an object')
  const { result } = message as { result?: unknown }
  const isList = typeof result === 'object' && result !== null && Object.hasOwn(result, 'tools')
  const narrow = isList ? { ...message, result: yield* filterList(result as Record<string, unknown>, blocks) } : message
  return JSON.stringify(narrow)
}

/** As work: yields what reading costs before it is done. Throws what `parseResponse` throws. */
export function parseWork(text: string): Generator<number, unknown> {
  return reading(text.length, () => parseResponse(text))
}

/**
 * A message of an upstream that must be looked into here. Throws SyntaxError where it is no JSON, and PlatformError
 * `upstream_error` where reading it would hold up everybody else.
 */
export function parseResponse(text: string): unknown {
  const read =
    text.length > parsedResponseCharsMax
      ? undefined
      : parseWithin(text, {
          keysMax: parsedResponseKeysMax,
          valuesMax: parsedResponseValuesMax,
          depthMax: parsedResponseDepthMax,
        })
  if (read !== undefined) return read.value
  throw new PlatformError('upstream_error', 'The upstream’s response is too large or too deeply nested to be filtered')
}

function* filterList(result: Readonly<Record<string, unknown>>, blocks: readonly Block[]): Generator<number, object> {
  const { tools } = result
  const rules = toolRules(blocks)
  const shown: unknown[] = []
  let left = narrowingCostMax
  for (const tool of Array.isArray(tools) ? tools : []) {
    const asking = isShown(tool, rules)
    let step = asking.next()
    for (; !step.done; step = asking.next()) {
      left -= step.value
      if (left < 0) throw tooCostly()
      yield step.value
    }
    if (step.value) shown.push(tool)
  }
  // Another token gets another list: nobody between may keep this one for all.
  return { ...result, tools: shown, ...('cacheScope' in result && { cacheScope: 'private' }) }
}

/** What has no name cannot be called. */
function* isShown(tool: unknown, rules: ToolRules): Generator<number, boolean> {
  if (typeof tool !== 'object' || tool === null || !Object.hasOwn(tool, 'name')) return false
  const { name } = tool as { name: unknown }
  return typeof name === 'string' && (yield* toolVerdict(rules, name)) !== 'never'
}

function tooCostly(): PlatformError {
  return new PlatformError(
    'upstream_error',
    'The upstream lists too many tools for this token’s patterns: mint a token with fewer or simpler patterns',
  )
}
