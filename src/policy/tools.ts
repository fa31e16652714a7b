/** Which tools a token could call (contract, 7.7): one is shown unless a block could never allow a call of it. */

import type { Block } from './block.ts'
import { RpcBody } from './rpc-match.ts'

export type ToolRules = Readonly<ReturnType<typeof toolRules>>

/** A policy's rules about tools, prepared once for all tools: there may be hundreds of rules and thousands of tools. */
export function toolRules(blocks: readonly Block[]) {
  const rules = blocks.flatMap(({ rpc = [] }) => rpc)
  return {
    /** Rules that can be evaluated with the tool's name alone; any other depends on the call. */
    asked: rules.filter(({ path }) => ['method', 'jsonrpc', 'params.name'].includes(path)),
    /** Whether a rule allows no call at all: no call has a text there. `params` is an object, the name has no parts. */
    isNever: rules.some(({ path }) => path === 'params' || path.startsWith('params.name.')),
  }
}

/** Whether a tool could ever be called. Yields the cost (`costToAsk`) of each step: there may be many rules. */
export function* couldCall({ asked, isNever }: ToolRules, tool: string): Generator<number, boolean> {
  if (isNever) return false
  const call = new RpcBody({ jsonrpc: '2.0', method: 'tools/call', params: { name: tool } })
  for (const rule of asked) if (!(yield* call.matches(rule))) return false
  return true
}

/** True if a block has rules about requests (`rpcReqMatch`). They decide which tools can be called. */
export function hasRpcRules(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc }) => rpc !== undefined)
}

export function restrictsArguments(blocks: readonly Block[]): boolean {
  return blocks.some(({ rpc = [] }) => rpc.some(({ path }) => path.startsWith('params.arguments')))
}
