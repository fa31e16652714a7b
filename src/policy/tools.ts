/**
 * Which tools a token could call (contract, gateway). Each rule is evaluated on the call that would be made. A tool is
 * shown unless a block could never allow a call of it.
 */

import type { Block } from './block.ts'
import { type RpcRule, ruleCost, ruleMatches } from './rpc-match.ts'

/** Whether a tool may be called: always, depending on the rest of the call, or never. */
export type Verdict = 'yes' | 'depends' | 'never'

/** A policy's rules about tools, prepared once for all tools: there may be hundreds of rules and thousands of tools. */
export interface ToolRules {
  /** Rules that can be evaluated with the tool's name alone. */
  readonly asked: readonly RpcRule[]
  /** The verdict of all other rules, the same for every tool. */
  readonly others: Verdict
}

/** Prepares the rules of a policy for `toolVerdict`. */
export function toolRules(blocks: readonly Block[]): ToolRules {
  const rules = blocks.flatMap(({ rpc = [] }) => rpc)
  const others = rules.filter((rule) => !isKnown(rule))
  return {
    asked: rules.filter(isKnown),
    others: others.some(isOfNoCall) ? 'never' : others.length > 0 ? 'depends' : 'yes',
  }
}

/**
 * The verdict on a tool, in steps: yields the cost (`costToAsk`) of each step before it. There may be many tools and
 * rules.
 */
export function* toolVerdict({ asked, others }: ToolRules, tool: string): Generator<number, Verdict> {
  if (others === 'never') return others
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: tool } }
  for (const rule of asked) {
    yield ruleCost(rule, call)
    if (!ruleMatches(rule, call)) return 'never'
  }
  return others
}

/** True if a block has rules about requests (`rpcReqMatch`). They decide which tools can be called. */
export function hasRpcRules(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc }) => rpc !== undefined)
}

/** True if a block restricts a call's arguments. */
export function restrictsArguments(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc = [] }) => rpc.some(({ path }) => path.startsWith('params.arguments')))
}

const known = new Set(['method', 'jsonrpc', 'params.name'])

/** True if the rule's value is known before the call is made. */
function isKnown({ path }: RpcRule): boolean {
  return known.has(path)
}

/** True for a path at which no call has a text: `params` is an object, and the name has no parts. */
function isOfNoCall({ path }: RpcRule): boolean {
  return path === 'params' || path.startsWith('params.name.')
}
