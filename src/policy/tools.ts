/**
 * Which tools a token could ever call (contract, gateway): each rule is asked of the call that it would be. A tool
 * is shown unless one of the blocks could never let it through.
 */

import type { Block } from './block.ts'
import { type RpcRule, ruleMatches } from './rpc-match.ts'

/** From best to worst: always, depending on what else the call says, and never. */
const verdicts = ['yes', 'depends', 'never'] as const
export type Verdict = (typeof verdicts)[number]

export function toolVerdict(blocks: readonly Block[], tool: string): Verdict {
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: tool } }
  let worst = 0
  for (const { rpc = [] } of blocks) {
    for (const rule of rpc) worst = Math.max(worst, verdicts.indexOf(verdictOf(rule, call)))
  }
  return verdicts[worst] ?? 'never'
}

/** Does any block say something of calls? */
export function narrowsTools(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc }) => rpc !== undefined)
}

const known = new Set(['method', 'jsonrpc', 'params.name'])

function verdictOf(rule: RpcRule, call: object): Verdict {
  if (known.has(rule.path)) return ruleMatches(rule, call) ? 'yes' : 'never'
  // The name is a string and `params` an object: no call has a text there.
  if (rule.path === 'params' || rule.path.startsWith('params.name.')) return 'never'
  return 'depends'
}
