/**
 * Patterns of `rpcReqMatch`: RE2, run in linear time by re2js; the runtime's own RegExp never sees them. Linear is not
 * cheap: what a pattern costs is the size of its program times the text, so that is counted, and bounded where
 * patterns or texts come together. Pure.
 */

import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import {
  patternCostToCompile,
  patternsKeptSizeMax,
  policyProgramSizeMax,
  rpcFoldedCharactersMax,
  rpcProgramSizeMax,
  rpcUnicodeClassesMax,
  rpcVerdictCharsMax,
  rpcVerdictsMax,
} from '../limits.ts'

interface Compiled {
  readonly program: RE2JS
  readonly size: number
  /** What was said of short texts: it is the names of a few tools all day. */
  readonly said: Map<string, boolean>
}

/** Patterns in use. Bounded by the size of their programs: one of a thousand takes a hundred kilobytes. */
const compiled = new LRUCache<string, Compiled>({
  maxSize: patternsKeptSizeMax,
  sizeCalculation: ({ size }) => size + 20,
})

/** Throws where it does not compile. */
function compile(pattern: string): Compiled {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const program = RE2JS.compile(pattern)
  const one = { program, size: program.programSize(), said: new Map<string, boolean>() }
  compiled.set(pattern, one)
  return one
}

/** Searched, not anchored. */
export function matches(pattern: string, text: string): boolean {
  const { program, said } = compile(pattern)
  const before = said.get(text)
  if (before !== undefined) return before
  const verdict = program.test(text)
  if (text.length > rpcVerdictCharsMax) return verdict
  if (said.size >= rpcVerdictsMax) said.clear()
  said.set(text, verdict)
  return verdict
}

/**
 * What it takes to ask a pattern of a text: instructions times characters, of which a processor does some 25 million a
 * second. A pattern that is not compiled yet counts for that alone: how large it is shows afterwards.
 */
export function costToAsk(pattern: string, text: string): number {
  const size = compiled.peek(pattern)?.size
  return size === undefined ? patternCostToCompile : size * (text.length + 1)
}

/** What a policy's patterns cost together. */
interface Sum {
  programSize: number
  unicodeClasses: number
  foldedCharacters: number
}

/** What is wrong with a pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  return problemOfNext(pattern, { programSize: 0, unicodeClasses: 0, foldedCharacters: 0 })
}

/**
 * What is wrong with the first of a policy's patterns that will not do, and its place in the list; undefined for
 * none.
 */
export function patternsProblem(
  patterns: readonly string[],
): { readonly at: number; readonly message: string } | undefined {
  const sum: Sum = { programSize: 0, unicodeClasses: 0, foldedCharacters: 0 }
  for (const [at, pattern] of patterns.entries()) {
    const message = problemOfNext(pattern, sum)
    if (message !== undefined) return { at, message }
  }
  return undefined
}

/** Adds the pattern to the sum of those before it. What compiling would cost is looked at before it is compiled. */
function problemOfNext(pattern: string, sum: Sum): string | undefined {
  // re2js and RE2 disagree on \B; \C splits characters. Neither is worth a wrong answer.
  if (/(?:^|[^\\])(?:\\\\)*\\[BC]/.test(pattern)) return 'must not use \\B or \\C'
  sum.unicodeClasses += pattern.match(/\\[pP]/g)?.length ?? 0
  sum.foldedCharacters += foldedCharactersOf(pattern)
  if (sum.unicodeClasses > rpcUnicodeClassesMax || sum.foldedCharacters > rpcFoldedCharactersMax)
    return 'is too costly a pattern, with those before it: use fewer and narrower character classes'
  try {
    const { size } = compile(pattern)
    if (size > rpcProgramSizeMax) return 'is too large a pattern: shorten its repetitions'
    sum.programSize += size
  } catch (error) {
    return `is not an RE2 pattern: ${error instanceof Error ? error.message : 'it does not compile'}`
  }
  if (sum.programSize > policyProgramSizeMax) {
    return `is one pattern too many: those of a policy may have ${policyProgramSizeMax} instructions together, so shorten their repetitions or use fewer`
  }
  return undefined
}

/**
 * Compiling takes time of its own: each Unicode class brings hundreds of ranges, and a range without case is folded
 * character by character. Counted roughly, and from above.
 */
function foldedCharactersOf(pattern: string): number {
  if (!/\(\?[a-zA-Z]*i/.test(pattern)) return 0
  let characters = 0
  for (const [, from = '', to = ''] of pattern.matchAll(
    /(\\x\{[0-9a-f]+\}|\\x[0-9a-f]{2}|[^])-(?=(\\x\{[0-9a-f]+\}|\\x[0-9a-f]{2}|[^]))/giu,
  )) {
    characters += Math.max(0, codePoint(to) - codePoint(from))
  }
  return characters
}

function codePoint(text: string): number {
  const hexadecimal = /^\\x\{?([0-9a-f]+)/i.exec(text)?.[1]
  return hexadecimal === undefined ? (text.codePointAt(0) ?? 0) : Number.parseInt(hexadecimal, 16)
}
