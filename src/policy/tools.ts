/**
 * Which tools a token could ever call (contract, gateway): each rule is asked of the call that it would be. A tool
 * is shown unless one of the blocks could never let it through.
 */

import type { Block } from './block.ts'
import { type RpcRule, ruleCost, ruleMatches } from './rpc-match.ts'

/** From best to worst: always, depending on what else the call says, and never. */
export type Verdict = 'yes' | 'depends' | 'never'

/** What a policy says of tools, read once for all of them: hundreds of rules times thousands of tools are many. */
export interface ToolRules {
  /** What can be asked of a tool's name. */
  readonly asked: readonly RpcRule[]
  /** What the other rules say of every tool. */
  readonly others: Verdict
}

export function toolRules(blocks: readonly Block[]): ToolRules {
  const rules = blocks.flatMap(({ rpc = [] }) => rpc)
  const others = rules.filter((rule) => !isKnown(rule))
  return {
    asked: rules.filter(isKnown),
    others: others.some(isOfNoCall) ? 'never' : others.length > 0 ? 'depends' : 'yes',
  }
}

/** In steps: yields what the next one costs (`costToAsk`) before it is taken. Tools are many, and rules too. */
export function* toolVerdict({ asked, others }: ToolRules, tool: string): Generator<number, Verdict> {
  if (others === 'never') return others
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: tool } }
  for (const rule of asked) {
    yield ruleCost(rule, call)
    if (!ruleMatches(rule, call)) return 'never'
  }
  return others
}

/** Does any block say something of calls? */
export function restrictsTools(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc }) => rpc !== undefined)
}

/** Does any block say something of a call's arguments? */
export function speaksOfArguments(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc = [] }) => rpc.some(({ path }) => path.startsWith('params.arguments')))
}

const known = new Set(['method', 'jsonrpc', 'params.name'])

/** Is what the rule asks for known of a call before it is made? */
function isKnown({ path }: RpcRule): boolean {
  return known.has(path)
}

/** The name is a string and `params` an object: no call has a text there. */
function isOfNoCall({ path }: RpcRule): boolean {
  return path === 'params' || path.startsWith('params.name.')
}
