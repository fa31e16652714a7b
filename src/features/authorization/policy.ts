/** The policy of an access token: one connection or all of a namespace, perhaps only some tools (contract, 13.8). */

import type { Grant } from '../../auth/grants.ts'
import { invalidRequest } from '../../errors.ts'
import { rpcPatternCharsMax } from '../../limits.ts'
import type { Constraint } from '../../model/constraint.ts'
import { readConstraint } from '../../policy/block.ts'

/** Ours: bytes of JSON of the names of the tools that one grant allows; the grant keeps them as they are. Past it: the consent page asks for fewer tools. */
const grantedToolsBytesMax = 12 * 1024

const methods = '^(?:initialize|ping|server/discover|tools/list|tools/call|notifications/.*)$'

type Allowed = Pick<Grant, 'namespace' | 'connectionId' | 'tools'>

/** Throws `invalid_request` if the names of the tools do not fit a pattern. */
export function policyOf({ namespace, connectionId, tools }: Allowed): Constraint[] {
  const constraint: Constraint = {
    namespaces: namespace,
    resources: 'connections',
    operations: 'execute',
    ...(connectionId !== undefined && { metadata: { connectionId } }),
    // Prompts have names too, and others may carry one: with some tools allowed, only tools are.
    ...(tools !== undefined && { rpcReqMatch: { method: methods, 'params.name': patternOf(tools) } }),
  }
  if ('problem' in readConstraint(constraint)) throw tooMany()
  return [constraint]
}

function patternOf(names: readonly string[]): string {
  const pattern = `^${alternation([...new Set(names)].sort())}$`
  // Names with a long beginning in common make a short pattern.
  const bytes = Buffer.byteLength(JSON.stringify(names))
  if (pattern.length > rpcPatternCharsMax || bytes > grantedToolsBytesMax) throw tooMany()
  return pattern
}

function tooMany() {
  return invalidRequest('tool: these names together are too long for one token; choose fewer tools, or all of them')
}

/** Sorted names as one group, with common beginnings written once, so that more names fit. */
function alternation(names: readonly string[]): string {
  const byFirst = Map.groupBy(
    names.filter((name) => name !== ''),
    ([first = '']) => first,
  )
  const parts = [...byFirst].map(([first, group]) => {
    const prefix = commonPrefix(group)
    return group.length === 1
      ? quoted(group[0] ?? first)
      : `${quoted(prefix)}${alternation(group.map((name) => name.slice(prefix.length)))}`
  })
  const isOptional = names.includes('')
  if (parts.length === 1 && !isOptional) return parts[0] ?? ''
  return `(?:${parts.join('|')})${isOptional ? '?' : ''}`
}

function commonPrefix(sorted: readonly string[]): string {
  const [first = '', last = ''] = [sorted[0], sorted.at(-1)]
  let length = 0
  while (length < first.length && first[length] === last[length]) length += 1
  // A surrogate pair stays whole.
  if (/[\ud800-\udbff]/.test(first[length - 1] ?? '')) length -= 1
  return first.slice(0, length)
}

function quoted(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
}
