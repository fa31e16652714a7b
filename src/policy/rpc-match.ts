/**
 * `rpcReqMatch`: patterns over the body of an MCP JSON-RPC request (spec 2.2; contract 4). Patterns are
 * RE2 and run in linear time by re2js; the runtime's own RegExp never sees them. Searched, not anchored.
 */

import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import {
  rpcFoldedCharactersMax,
  rpcPathPartsMax,
  rpcProgramSizeMax,
  rpcUnicodeClassesMax,
  rpcValueCharsMax,
  rpcVerdictCharsMax,
  rpcVerdictsMax,
} from '../limits.ts'

export interface RpcRule {
  /** As it was written: dots separate. */
  readonly path: string
  readonly pattern: string
}

interface Compiled {
  readonly program: RE2JS
  /** What was said of short texts: it is the names of a few tools all day. */
  readonly said: Map<string, boolean>
}

/** Patterns in use, compiled. Few, because one can take a hundred kilobytes. */
const compiled = new LRUCache<string, Compiled>({ max: 200 })

function matches(pattern: string, text: string): boolean {
  let known = compiled.get(pattern)
  if (known === undefined) {
    known = { program: RE2JS.compile(pattern), said: new Map() }
    compiled.set(pattern, known)
  }
  const { program, said } = known
  const before = said.get(text)
  if (before !== undefined) return before
  const verdict = program.test(text)
  if (text.length > rpcVerdictCharsMax) return verdict
  if (said.size >= rpcVerdictsMax) said.clear()
  said.set(text, verdict)
  return verdict
}

/** What is wrong with a pattern, or undefined. Asked when a policy is made; nothing is kept of it then. */
export function patternProblem(pattern: string): string | undefined {
  // re2js and RE2 disagree on \B; \C splits characters. Neither is worth a wrong answer.
  if (/(?:^|[^\\])(?:\\\\)*\\[BC]/.test(pattern)) return 'must not use \\B or \\C'
  if (isCostly(pattern)) return 'is too costly a pattern: use fewer and narrower character classes'
  try {
    if (RE2JS.compile(pattern).programSize() > rpcProgramSizeMax)
      return 'is too large a pattern: shorten its repetitions'
    return undefined
  } catch (error) {
    return `is not an RE2 pattern: ${error instanceof Error ? error.message : 'it does not compile'}`
  }
}

/**
 * Compiling takes time of its own: each Unicode class brings hundreds of ranges, and a range without case is
 * folded character by character. Both are counted before anything is compiled, roughly and from above.
 */
function isCostly(pattern: string): boolean {
  if ((pattern.match(/\\[pP]/g)?.length ?? 0) > rpcUnicodeClassesMax) return true
  if (!/\(\?[a-zA-Z]*i/.test(pattern)) return false
  let characters = 0
  for (const [, from = '', to = ''] of pattern.matchAll(
    /(\\x\{[0-9a-f]+\}|\\x[0-9a-f]{2}|[^])-(?=(\\x\{[0-9a-f]+\}|\\x[0-9a-f]{2}|[^]))/giu,
  )) {
    characters += Math.max(0, codePoint(to) - codePoint(from))
  }
  return characters > rpcFoldedCharactersMax
}

function codePoint(text: string): number {
  const hexadecimal = /^\\x\{?([0-9a-f]+)/i.exec(text)?.[1]
  return hexadecimal === undefined ? (text.codePointAt(0) ?? 0) : Number.parseInt(hexadecimal, 16)
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
  if (text === undefined || text.length > rpcValueCharsMax) return false
  return matches(rule.pattern, text)
}

/**
 * What a client says before it can call anything, and to find out what there is: a token for one tool must be able
 * to. Of these a block's rules below `params` are not asked; its others are.
 */
const preliminary = /^(?:initialize|ping|server\/discover|tools\/list|notifications\/.*)$/s

export function isOfParams({ path }: RpcRule): boolean {
  return path.startsWith('params.')
}

/** Does the request pass the rule, by matching it or by being one that it is not asked of? */
export function rulePasses(rule: RpcRule, body: unknown): boolean {
  return (isOfParams(rule) && isPreliminary(body)) || ruleMatches(rule, body)
}

function isPreliminary(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'method')) return false
  const { method } = body as { method: unknown }
  return typeof method === 'string' && preliminary.test(method)
}

/** Own properties only, so that `constructor.name` or `length` name nothing; digits index no list. */
function textAt(body: unknown, path: string): string | undefined {
  let value = body
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, part)) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return JSON.stringify(value)
  return undefined
}
