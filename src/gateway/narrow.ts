/** `tools/list` answers, without the tools that the token could never call. Everything else in them stays. */

import type { Block } from '../policy/block.ts'
import { toolVerdict } from '../policy/tools.ts'

/** The message with fewer tools, as text. Throws SyntaxError for what is no JSON, or too deep. */
export function narrowTools(text: string, blocks: readonly Block[]): string {
  // Events may be there for their id alone.
  if (text === '') return text
  const message: unknown = JSON.parse(text)
  if (typeof message !== 'object' || message === null || !('result' in message)) return text
  const { result } = message as { result: unknown }
  if (typeof result !== 'object' || result === null || !Object.hasOwn(result, 'tools')) return text
  try {
    return JSON.stringify({ ...message, result: narrowed(result as Record<string, unknown>, blocks) })
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
