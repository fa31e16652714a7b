/**
 * `rpcReqMatch`: rules over the body of an MCP JSON-RPC request (spec 2.2; contract 4): what stands at a dot-path must
 * match a pattern (`patterns.ts`).
 */

import { rpcPathPartsMax, rpcValueCharsMax } from '../limits.ts'
import { costToAsk, matches } from './patterns.ts'

export interface RpcRule {
  /** As it was written: dots separate. */
  readonly path: string
  readonly pattern: string
}

export function pathProblem(path: string): string | undefined {
  const parts = path.split('.')
  if (parts.includes('')) return 'has an empty part between dots'
  if (parts.length > rpcPathPartsMax) return `at most ${rpcPathPartsMax} parts`
  return undefined
}

/** Missing, null, an object or a list does not match; neither does what is too long to search safely. */
export function ruleMatches(rule: RpcRule, body: unknown): boolean {
  const text = textAt(body, rule.path)
  return text !== undefined && matches(rule.pattern, text)
}

/** What it takes to ask the rule of this body, in the unit of `costToAsk`. */
export function ruleCost(rule: RpcRule, body: unknown): number {
  const text = textAt(body, rule.path)
  return text === undefined ? 1 : costToAsk(rule.pattern, text)
}

/**
 * What a client says before it can call anything, and to find out what there is: a token for one tool must be able
 * to. Of these a block's rules below `params` are not asked; its others are.
 */
const preliminary = /^(?:initialize|ping|server\/discover|tools\/list|notifications\/.*)$/s

export function isParamsRule({ path }: RpcRule): boolean {
  return path.startsWith('params.')
}

/** Does the request pass the rule, by matching it or by being one that it is not asked of? */
export function rulePasses(rule: RpcRule, body: unknown): boolean {
  return (isParamsRule(rule) && isHandshakeMethod(body)) || ruleMatches(rule, body)
}

function isHandshakeMethod(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'method')) return false
  const { method } = body as { method: unknown }
  if (typeof method !== 'string' || !preliminary.test(method)) return false
  // With an id it is a request, whatever its method is called, and a server may answer it.
  return !(method.startsWith('notifications/') && Object.hasOwn(body, 'id'))
}

/**
 * Own properties only, so that `constructor.name` or `length` name nothing; digits index no list. Nothing stands where
 * two keys are alike but for case or width: some readers take them for the same one, and the last of them counts.
 */
function textAt(body: unknown, path: string): string | undefined {
  let value = body
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, part) || lookalikesIn(value).has(foldCase(part))) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  if (typeof value === 'string') return value.length > rpcValueCharsMax ? undefined : value
  if (typeof value === 'boolean') return JSON.stringify(value)
  // A number that another reader may take for another one is none that a rule could speak of (`schema/json.ts`).
  if (typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)) return JSON.stringify(value)
  return undefined
}

/** By object, as long as its request is there: rules may be many, and an object may have thousands of keys. */
const lookalikes = new WeakMap<object, ReadonlySet<string>>()

/** What several keys of an object are, once folded. */
function lookalikesIn(object: object): ReadonlySet<string> {
  const known = lookalikes.get(object)
  if (known !== undefined) return known
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const key of Object.keys(object)) {
    const name = foldCase(key)
    if (seen.has(name)) twice.add(name)
    seen.add(name)
  }
  lookalikes.set(object, twice)
  return twice
}

/**
 * More marks in a row than any language writes (UAX 15, stream-safe text): putting them in their order takes time
 * squared, ten seconds for 80 kB. The two letters are marks once they are normalized.
 */
const manyMarks = /[\p{M}\uff9e\uff9f]{31}/u

/** The same for keys that some readers take for the same. With so many marks a key is like no name that a rule has. */
export function foldCase(key: string): string {
  return (manyMarks.test(key) ? key : key.normalize('NFKC')).toLowerCase()
}
