/**
 * Finds a text that some patterns match and others do not, by following their compiled programs side by side. So it is
 * known whether two patterns can hold together, or whether one allows all that another does, without trying texts.
 *
 * A state holds, for each program, the instructions that it waits at; each text leads to one state. Characters that no
 * instruction tells apart lead to the same state, so one of each kind is followed. The shortest text is found first.
 */

import { compile, costToCompile, matches } from './patterns.ts'

/** Ours: characters of a text that postern searches as an example of what patterns match; a rule matches no value that is longer (`rpcValueCharsMax`). Past it: postern looks for no text. */
const textCharsMax = 1024
/** Cost of looking at an instruction, in the unit of `sliceCost`. */
const visitCost = 3
/** Ours: kinds of characters that the patterns of one search tell apart. Past it: the search stops undecided. */
const kindsMax = 300
/** Ours: cost of one search, a hundred milliseconds' work. Past it: the search stops undecided. */
const searchCostMax = 2_500_000
/** States that one search remembers, of some hundred bytes each. Past it: the search stops undecided. */
const searchStatesMax = 20_000

/** An instruction of a compiled program, as re2js has it. */
interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  readonly runes: Int32Array
  matchRune(character: number): boolean
}
interface Program {
  readonly inst: readonly Instruction[]
  readonly start: number
}

/** The operations of RE2's programs, by their numbers there. Each from `Op.Rune` on takes one character. */
const Op = { Alt: 1, AltMatch: 2, Capture: 3, EmptyWidth: 4, Fail: 5, Match: 6, Nop: 7, Rune: 8, AnyNotNewline: 11 }
/** The conditions of `Op.EmptyWidth`, which hold between two characters. */
const At = { lineStart: 1, lineEnd: 2, textStart: 4, textEnd: 8, wordBoundary: 16, noWordBoundary: 32 }
const foldsCase = 1

/** Before the first character and behind the last one. */
const nothing = -1
const newline = 10

const programOf = (pattern: string): Program => compile(pattern).program.re2().prog as unknown as Program

/** `none`: no text of up to 1,024 characters; undefined: the search stopped before it could know. */
export type FoundText = { readonly text: string } | 'none' | undefined

/** A text that each pattern of `all` matches and none of `none` does, in steps. Throws for an invalid pattern. */
export function* findingText(all: readonly string[], none: readonly string[] = []): Generator<number, FoundText> {
  const programs: Program[] = []
  for (const pattern of [...all, ...none]) {
    yield costToCompile(pattern)
    programs.push(programOf(pattern))
  }
  const kinds = yield* kindsOfCharacters(programs)
  if (kinds === undefined || kinds.length > kindsMax) return undefined
  const isWanted = (waits: readonly Waits[]) => waits.every((one, index) => (one === 'matched') === index < all.length)
  const isLost = (waits: readonly Waits[]) => waits.some((one, index) => one === 'matched' && index >= all.length)
  let states: State[] = [{ text: '', before: nothing, waits: programs.map(() => []) }]
  const seen = new Set<string>()
  const work: Work = { visited: 0 }
  let cost = 0
  let isUnsure = false
  while (states.length > 0) {
    const next: State[] = []
    for (const state of states) {
      for (const character of [nothing, ...kinds]) {
        // The cost of the step before: it is known when it was done, and steps are alike.
        const spent = work.visited * visitCost
        work.visited = 0
        cost += spent
        yield spent
        if (cost > searchCostMax || seen.size > searchStatesMax) return undefined
        const step = { character, conditions: conditionsBetween(state.before, character) }
        const waits = programs.map((program, index) => stepOf(program, state.waits[index] as Waits, step, work))
        if (character === nothing) {
          if (isWanted(waits)) return confirmed(state.text, all, none)
          continue
        }
        const text = state.text + String.fromCodePoint(character)
        const key = `${sideOf(character)} ${waits.join(' ')}`
        if (isLost(waits) || seen.has(key)) continue
        // A text of the same characters may have fewer units: pairs of surrogates count twice.
        if (text.length > textCharsMax) isUnsure ||= Array.from(text).length <= textCharsMax
        else {
          seen.add(key)
          next.push({ text, before: character, waits })
        }
      }
    }
    states = next
  }
  return isUnsure ? undefined : 'none'
}

/** Whether each match of the pattern begins where the text begins, and ends where it ends. */
export function isAnchored(pattern: string): boolean {
  const program = programOf(pattern)
  return !canMatchPast(program, At.textStart) && !canMatchPast(program, At.textEnd)
}

/** Whether a way through the program does without this condition. */
function canMatchPast({ inst, start }: Program, condition: number): boolean {
  const seen = new Set<number>()
  const open = [start]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const one = inst[at]
    if (one === undefined || seen.has(at) || one.op === Op.Fail) continue
    seen.add(at)
    if (one.op === Op.Match) return true
    if (one.op === Op.EmptyWidth && (one.arg & condition) !== 0) continue
    open.push(one.out)
    if (one.op === Op.Alt || one.op === Op.AltMatch) open.push(one.arg)
  }
  return false
}

/** Instructions that were looked at since somebody counted. */
interface Work {
  visited: number
}

/** The instructions that a program waits at, in order; it may also begin at each character. */
type Waits = readonly number[] | 'matched'

interface State {
  readonly text: string
  readonly before: number
  readonly waits: readonly Waits[]
}

/** The instructions that a program waits at behind this character. */
function stepOf(
  { inst, start }: Program,
  here: Waits,
  { character, conditions }: { readonly character: number; readonly conditions: number },
  work: Work,
): Waits {
  if (here === 'matched') return here
  const seen = new Set<number>()
  const open = [...here, start]
  const next = new Set<number>()
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const one = inst[at]
    if (one === undefined || seen.has(at)) continue
    seen.add(at)
    work.visited += 1
    if (one.op === Op.Match) return 'matched'
    if (one.op >= Op.Rune) {
      if (character !== nothing && takes(one, character)) next.add(one.out)
    } else if (one.op !== Op.Fail && (one.op !== Op.EmptyWidth || (one.arg & ~conditions) === 0)) {
      open.push(one.out)
      if (one.op === Op.Alt || one.op === Op.AltMatch) open.push(one.arg)
    }
  }
  return [...next].sort((a, b) => a - b)
}

function takes(one: Instruction, character: number): boolean {
  if (one.op === Op.AnyNotNewline) return character !== newline
  return one.op === Op.AnyNotNewline - 1 || one.matchRune(character)
}

const isWord = (character: number) => character >= 0 && /^\w$/.test(String.fromCodePoint(character))

/** As far as conditions tell characters apart. */
const sideOf = (character: number) => (character === newline ? 'newline' : isWord(character) ? 'word' : 'other')

function conditionsBetween(before: number, after: number): number {
  return (
    (before === nothing ? At.textStart | At.lineStart : before === newline ? At.lineStart : 0) |
    (after === nothing ? At.textEnd | At.lineEnd : after === newline ? At.lineEnd : 0) |
    (isWord(before) === isWord(after) ? At.noWordBoundary : At.wordBoundary)
  )
}

/** Characters that people read most easily come first, since one stands for all of its kind. */
const readable = Array.from('abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. /', (one) =>
  one.charCodeAt(0),
)
/** Characters that are the same as a letter of ASCII where case is folded. */
const foldedTwins: Readonly<Record<string, number>> = { k: 0x212a, s: 0x17f }

/**
 * One character of each kind that the programs tell apart, in steps. Undefined for a program whose kinds are not known:
 * it folds the case of a character beyond ASCII, or has an operation that this search does not know.
 */
function* kindsOfCharacters(programs: readonly Program[]): Generator<number, number[] | undefined> {
  const takers = new Map<string, Instruction>()
  const bounds = new Set<number>([...readable, newline, newline + 1, 0])
  for (const one of programs.flatMap(({ inst }) => inst)) {
    if (one.op > Op.AnyNotNewline) return undefined
    if (one.op < Op.Rune) continue
    const [single] = one.runes
    if (one.runes.length === 1 && single !== undefined) {
      const letter = String.fromCodePoint(single)
      const isFolded = (one.arg & foldsCase) !== 0
      if (isFolded && single > 0x7f) return undefined
      const like = isFolded ? [letter.toLowerCase(), letter.toUpperCase()].map((each) => each.charCodeAt(0)) : [single]
      const twin = isFolded ? foldedTwins[letter.toLowerCase()] : undefined
      for (const each of [...like, ...(twin === undefined ? [] : [twin])]) bounds.add(each).add(each + 1)
    } else for (const [index, bound] of one.runes.entries()) bounds.add(bound + (index % 2))
    takers.set(`${one.op} ${one.arg} ${one.runes.length > 100 ? Bun.hash(one.runes) : one.runes.join()}`, one)
  }
  const kinds = new Map<string, number>()
  for (const character of bounds) {
    if (character > 0x10ffff) continue
    yield takers.size * 4
    const taken = Array.from(takers.values(), (one) => (takes(one, character) ? '1' : '0')).join('')
    const kind = `${sideOf(character)} ${taken}`
    // One that takes one unit, if there is one: a text may have so many units.
    if ((kinds.get(kind) ?? Number.POSITIVE_INFINITY) > 0xffff)
      kinds.set(kind, Math.min(character, kinds.get(kind) ?? character))
  }
  return [...kinds.values()]
}

/** Half a surrogate pair can become a whole one in a text, so what was found is asked once more. */
function confirmed(text: string, all: readonly string[], none: readonly string[]): FoundText {
  const isFound = all.every((one) => matches(one, text)) && !none.some((one) => matches(one, text))
  return isFound ? { text } : undefined
}
