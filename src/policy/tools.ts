/**
 * Which tools a token could ever call (contract, gateway): each rule is asked of the call that it would be. A tool
 * is shown unless one of the blocks could never let it through.
 */

import type { Block } from './block.ts'
import { type RpcRule, ruleCost, ruleMatches } from './rpc-match.ts'

/** From best to worst: always, depending on what else the call says, and never. */
export type Verdict = 'yes' | 'depends' | 'never'

/** In steps: yields what the next one costs (`costToAsk`) before it is taken. Tools are many, and rules too. */
export function* toolVerdict(blocks: readonly Block[], tool: string): Generator<number, Verdict> {
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: tool } }
  let worst: Verdict = 'yes'
  for (const { rpc = [] } of blocks) {
    for (const rule of rpc) {
      if (isKnown(rule)) yield ruleCost(rule, call)
      const verdict = verdictOf(rule, call)
      if (verdict === 'never') return verdict
      if (verdict === 'depends') worst = verdict
    }
  }
  return worst
}

/** Does any block say something of calls? */
export function narrowsTools(blocks: readonly Block[]): boolean {
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

function verdictOf(rule: RpcRule, call: object): Verdict {
  if (isKnown(rule)) return ruleMatches(rule, call) ? 'yes' : 'never'
  // The name is a string and `params` an object: no call has a text there.
  if (rule.path === 'params' || rule.path.startsWith('params.name.')) return 'never'
  return 'depends'
}
