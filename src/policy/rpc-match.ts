/**
 * `rpcReqMatch`: patterns over the body of an MCP JSON-RPC request (spec 2.2; contract 4). Patterns are
 * RE2 and run in linear time by re2js; the runtime's own RegExp never sees them. Searched, not anchored.
 */

import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { rpcPathPartsMax, rpcProgramSizeMax, rpcValueCharsMax } from '../limits.ts'

export interface RpcRule {
  /** As it was written: dots separate. */
  readonly path: string
  readonly pattern: string
}

/** Compiled patterns, by their text. A policy is checked once at mint and then on every call. */
const compiled = new LRUCache<string, RE2JS>({ max: 1000 })

function compile(pattern: string): RE2JS {
  let program = compiled.get(pattern)
  if (program === undefined) {
    program = RE2JS.compile(pattern)
    compiled.set(pattern, program)
  }
  return program
}

/** What is wrong with a pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  // re2js and RE2 disagree on \B; \C splits characters. Neither is worth a wrong answer.
  if (/(?:^|[^\\])(?:\\\\)*\\[BC]/.test(pattern)) return 'must not use \\B or \\C'
  try {
    if (compile(pattern).programSize() > rpcProgramSizeMax) return 'is too large a pattern: shorten its repetitions'
    return undefined
  } catch (error) {
    return `is not an RE2 pattern: ${error instanceof Error ? error.message : 'it does not compile'}`
  }
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
  return compile(rule.pattern).test(text)
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
