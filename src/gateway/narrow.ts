/** `tools/list` answers, without the tools that the token could never call. Everything else in them stays. */

import type { Block } from '../policy/block.ts'
import { toolVerdict } from '../policy/tools.ts'

/**
 * The message with fewer tools, written anew: another reader of its text might find another list in it. Throws
 * SyntaxError for what is no JSON object, or too deep.
 */
export function narrowTools(text: string, blocks: readonly Block[]): string {
  // Events may be there for their id alone.
  if (text === '') return text
  const message: unknown = JSON.parse(text)
  if (typeof message !== 'object' || message === null || Array.isArray(message)) throw new SyntaxError('not an object')
  const { result } = message as { result?: unknown }
  const isList = typeof result === 'object' && result !== null && Object.hasOwn(result, 'tools')
  try {
    return JSON.stringify(
      isList ? { ...message, result: narrowed(result as Record<string, unknown>, blocks) } : message,
    )
  } catch {
    // The runtime reads deeper than it writes.
    throw new SyntaxError('nested too deep')
  }
}

function narrowed(result: Readonly<Record<string, unknown>>, blocks: readonly Block[]): object {
  const { tools } = result
  const shown = Array.isArray(tools) ? tools.filter((tool) => isShown(tool, blocks)) : []
  // Another token gets another list: nobody between may keep this one for all.
  return { ...result, tools: shown, ...('cacheScope' in result && { cacheScope: 'private' }) }
}

/** What has no name cannot be called. */
function isShown(tool: unknown, blocks: readonly Block[]): boolean {
  if (typeof tool !== 'object' || tool === null || !Object.hasOwn(tool, 'name')) return false
  const { name } = tool as { name: unknown }
  return typeof name === 'string' && toolVerdict(blocks, name) !== 'never'
}
