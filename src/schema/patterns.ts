/**
 * Patterns of `rpcReqMatch`: RE2 syntax, matched in linear time by re2js, never by the runtime's RegExp. Linear is not
 * cheap: matching costs the size of the compiled program times the length of the text. So sizes are bounded, and costs
 * are counted wherever many patterns or texts meet. Pure, apart from a cache.
 */

import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import * as limits from '../limits.ts'
import { rangesOf } from './pattern-ranges.ts'

/** Cost of compiling a pattern, and of each of its ranges and instructions. Past it: as for `sliceCost`. */
const patternCostToCompile = 60_000
const rangeCostToCompile = 30
/** Compiled patterns, in instructions of 100 to 500 bytes; four ranges count as one. Past it: compiled again. */
const patternsKeptSizeMax = 50_000

interface Compiled {
  readonly program: RE2JS
  readonly size: number
  readonly ranges: number
}

const compiled = new LRUCache<string, Compiled>({
  maxSize: patternsKeptSizeMax,
  sizeCalculation: ({ size, ranges }) => size + Math.ceil(ranges / 4) + 20,
})

/** Compiles, with a cache. Throws if the pattern is invalid. */
export function compile(pattern: string): Compiled {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const program = RE2JS.compile(pattern)
  const one = { program, size: program.programSize(), ranges: rangesOf(pattern) }
  compiled.set(pattern, one)
  return one
}

/** Searches the text: the pattern is not anchored. Throws if the pattern is invalid. */
export function matches(pattern: string, text: string): boolean {
  return isFound(compile(pattern).program, text)
}

/**
 * Whether a pattern matches anywhere in a text. Not by `test`: its automaton may take thirty megabytes for a pattern of
 * twenty characters, by the texts that it was asked about, and stays with the program.
 */
export function isFound(program: RE2JS, text: string): boolean {
  return program.matcher(text).find()
}

/** Cost of matching, in instructions times characters (25 million a second), or of compiling an uncompiled pattern. */
export function costToAsk(pattern: string, text: string): number {
  const size = compiled.peek(pattern)?.size
  return size === undefined ? costToCompile(pattern) : size * (text.length + 1)
}

/** The cost of compiling a pattern, in the same unit: nothing for one that is compiled. */
export function costToCompile(pattern: string): number {
  return compiled.has(pattern) ? 0 : patternCostToCompile + rangesOf(pattern) * rangeCostToCompile
}

/** Totals of a policy's patterns. */
type Sum = Record<'ranges' | 'programSize' | 'unicodeClasses' | 'foldedCharacters', number>

/** The problem with a single pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  return patternsProblem([pattern])?.message
}

/** The first pattern of a policy that is invalid or exceeds a bound: its index and what is wrong. */
export function patternsProblem(patterns: readonly string[]) {
  const sum: Sum = { ranges: 0, programSize: 0, unicodeClasses: 0, foldedCharacters: 0 }
  for (const [at, pattern] of patterns.entries()) {
    const message = problemOfNext(pattern, sum)
    if (message !== undefined) return { at, message }
  }
  return undefined
}

/** Adds a pattern to the totals. The cost of compiling is estimated before the pattern is compiled. */
function problemOfNext(pattern: string, sum: Sum): string | undefined {
  // re2js and RE2 disagree on \B, and \C splits characters: refuse both.
  if (/(?:^|[^\\])(?:\\\\)*\\[BC]/.test(pattern)) return 'must not use \\B or \\C'
  sum.ranges += rangesOf(pattern)
  sum.unicodeClasses += pattern.match(/\\[pP]/g)?.length ?? 0
  sum.foldedCharacters += foldedCharactersOf(pattern)
  const isCostly =
    sum.unicodeClasses > limits.rpcUnicodeClassesMax || sum.foldedCharacters > limits.rpcFoldedCharactersMax
  if (isCostly || sum.ranges > limits.patternRangesMax)
    return 'is too costly a pattern, with those before it: use fewer and narrower character classes'
  try {
    const { size } = compile(pattern)
    if (size > limits.rpcProgramSizeMax) return 'is too large a pattern: shorten its repetitions'
    sum.programSize += size
  } catch (error) {
    return `is not an RE2 pattern: ${error instanceof Error ? error.message : 'it does not compile'}`
  }
  if (sum.programSize > limits.policyProgramSizeMax)
    return `is one pattern too many: those of a policy may have ${limits.policyProgramSizeMax} instructions together, so shorten their repetitions or use fewer`
  return undefined
}

/** The characters in ranges of a case-insensitive pattern, which compiling folds one by one: a rough upper estimate. */
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
