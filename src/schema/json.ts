/**
 * Strict JSON: refuses what two parsers could read differently. The syntax is checked by the runtime's parser. In
 * addition: valid UTF-8, no byte order mark, no duplicate keys, no lone surrogates, and a bound on nesting. No I/O.
 */

import { sliceCost } from '../limits.ts'
import { type Problem, placeOf } from './check.ts'
import { jsonErrorPosition } from './json-error.ts'
import { isExact, numberEnd, stringCharactersPerLook, stringEnd, unescaped } from './json-tokens.ts'
import { drained, valuesPerStep } from './steps.ts'
import { TextHashes } from './text-hashes.ts'

/** Cost of parsing a character, at most: 10 ms for a megabyte, 50 if it is all values. Past it: as for `sliceCost`. */
const jsonCharacterCost = 1.2
/** Bytes that take microseconds. Past it: they wait for a turn of their owner. */
const parsedAtOnceMax = 1024
/** Characters looked at in one step, which takes as long as that of `valuesPerStep`. Past it: the next step. */
const charactersPerStep = 10_000
/** An object takes as long as some values in a list: its members are hashed and sorted, each by its key. */
const valuesPerKey = 4
/** Texts of a JSON from which their hashes are looked at, 0.25 µs each. Below it: so few cannot hold up anybody. */
export const hashedTextsMin = 256

/**
 * Ours: parts of the places of all numbers that are kept as they are written: numbers times the depth of each. Past it:
 * all of them come out as the runtime reads them, because their places alone would take a gigabyte.
 */
export const keptPlacesMax = 50_000

export type JsonResult = { readonly value: unknown } | { readonly problem: Problem }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes bytes. Undefined if they are not UTF-8 or begin with a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * The treatment of a number that changes when it is parsed, such as one with 20 digits, because another parser may read
 * it differently. 'any': accept it. 'exact': refuse it, for JSON that is stored or re-encoded. 'marked': replace it by
 * NaN, for JSON that is examined here by paths of keys while its original text is passed on; numbers in arrays stay,
 * because no path leads there.
 */
export type Numbers = 'any' | 'exact' | 'marked'

/** Bounds for untrusted JSON. Without `numbers`, 'any'. */
export interface JsonBounds {
  readonly depthMax: number
  readonly numbers?: Numbers
  /** Keys of all objects together. Building objects takes time, however few bytes they have. */
  readonly keysMax?: number
  /** Values in objects and arrays, counted by commas and brackets. */
  readonly valuesMax?: number
  /** Texts from which their hashes are looked at. By default `hashedTextsMin`: fewer hold up nobody by themselves. */
  readonly hashedTextsMin?: number | undefined
  /** Whether texts may have halves of surrogate pairs, which mean different things to different readers. */
  readonly allowsHalves?: boolean
  /** Takes the memory of all values before anything is built, keys included, and throws if there is none for them. */
  readonly owner?: { takeValues(values: number): void } | undefined
}

/** The bounds of what is counted before anything is built. */
export type Counted = Required<Pick<JsonBounds, 'depthMax' | 'keysMax' | 'valuesMax'>>

/** Parses bytes, which must be UTF-8. */
export function readJsonBytes(bytes: Uint8Array, bounds: JsonBounds): JsonResult {
  return drained(parsing(bytes, bounds))
}

/** Parses bytes, which must be UTF-8, as work in steps. */
export function* parsing(bytes: Uint8Array, bounds: JsonBounds): Generator<number, JsonResult> {
  if (bytes.length > parsedAtOnceMax) yield bytes.length * jsonCharacterCost
  const text = decodeUtf8(bytes)
  if (text === undefined) return { problem: { place: '', message: 'is not UTF-8, or begins with a byte order mark' } }
  return yield* parsingText(text, bounds)
}

/** `read` as work in steps: first yields the cost of parsing this many characters, in the unit of `sliceCost`. */
export function* reading<T>(characters: number, read: () => T): Generator<number, T> {
  yield characters * jsonCharacterCost
  return read()
}

/** Parses a text. The problem's place is '' for the text as a whole. */
export function readJson(text: string, bounds: JsonBounds): JsonResult {
  return drained(parsingText(text, bounds))
}

export function* parsingText(text: string, bounds: JsonBounds): Generator<number, JsonResult> {
  const { depthMax, keysMax, valuesMax, numbers = 'any', owner } = bounds
  const parts = yield* countingParts(text)
  const tooMany = (count: number, max: number | undefined) => max !== undefined && count > max
  if (tooMany(parts.keys, keysMax)) return { problem: { place: '', message: `has more than ${keysMax} keys` } }
  if (tooMany(parts.values, valuesMax)) return { problem: { place: '', message: `has more than ${valuesMax} values` } }
  if (yield* haveOneHash(text, parts.strings, bounds.hashedTextsMin))
    return { problem: { place: '', message: 'has too many texts that share one hash' } }
  owner?.takeValues(parts.values + valuesPerKey * parts.keys)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const detail = error instanceof Error ? error.message.replace(/^JSON Parse error: /, '') : ''
    return { problem: { place: '', message: `is not JSON: ${detail}${jsonErrorPosition(text)}` } }
  }
  const areNumbersAtRisk = numbers !== 'any' && mayChange.test(text)
  // Fast path. Without escapes there is no lone surrogate, and if the value has as many keys as the text, none is a
  // duplicate. Counting is a fraction of the cost of the walk below, and enough for most texts.
  if (!areNumbersAtRisk && !text.includes('\\') && (yield* countingKeys(value, depthMax)) === parts.keys)
    return { value }
  const inexact: Inexact[] = []
  const problem = yield* scanning(text, { ...bounds, numbers: areNumbersAtRisk ? numbers : 'any' }, inexact)
  if (problem !== undefined) return { problem }
  for (const { place } of inexact) {
    yield place.length * placeCost
    value = withValue(value, place, Number.NaN)
  }
  return { value }
}

/** Parses a text, in steps. Undefined, with nothing built, if it exceeds a bound. Throws what JSON.parse() throws. */
export function* parsingWithin(text: string, { keysMax, valuesMax, depthMax }: Counted) {
  const { keys, values, depth, strings } = yield* countingParts(text)
  if (keys > keysMax || values > valuesMax || depth > depthMax || (yield* haveOneHash(text, strings))) return undefined
  return yield* reading(text.length, () => ({ value: JSON.parse(text) as unknown }))
}

/**
 * As `parsingWithin`, and a number that would change stays as it is written: `JSON.stringify` writes it so. To everybody
 * else it is an object, so that this serves values that are passed on and not looked into.
 */
export function* parsingExactly(text: string, bounds: Counted) {
  const read = yield* parsingWithin(text, bounds)
  if (read === undefined || !mayChange.test(text)) return read
  const inexact: Inexact[] = []
  // Where a key is given twice, the places do not tell which value is meant; and there may be too many.
  if ((yield* scanning(text, { depthMax: bounds.depthMax, numbers: 'kept' }, inexact)) !== undefined) return read
  let { value } = read
  for (const { place, number } of inexact) {
    yield place.length * placeCost
    value = withValue(value, place, rawJson(number))
  }
  return { value }
}

/** TypeScript does not know it yet. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON

/** Parses a small text of somebody else. Throws SyntaxError. */
export function parseForeign(text: string): unknown {
  if (drained(haveOneHash(text, drained(countingParts(text)).strings)))
    throw new SyntaxError('too many texts that share one hash')
  return JSON.parse(text)
}

/** Whether many of a text's strings were made to have one hash (`text-hashes.ts`). `strings`: how many it has. */
function* haveOneHash(text: string, strings: number, hashedFrom = hashedTextsMin): Generator<number, boolean> {
  if (strings < hashedFrom) return false
  const hashes = new TextHashes()
  let looked = 0
  for (let i = text.indexOf('"'); i >= 0; i = text.indexOf('"', i + 1)) {
    const end = stringEnd(text, i)
    if (end < 0) return false
    looked += charactersPerStep / valuesPerStep + (end - i) / stringCharactersPerLook
    if (looked >= charactersPerStep) {
      looked = 0
      yield sliceCost
    }
    if (!hashes.add(unescaped(text.slice(i + 1, end)))) return true
    i = end
  }
  return false
}

/** An escape of an ASCII letter, digit or `_`, which nobody has to write. Some readers compare names as they are written. */
const plainEscape = /\\u00(?:3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])/

/** Whether a text may have a number that changes when it is parsed: shorter ones never do. */
const mayChange = /[\d.]{16}|\d[eE]/

/** Cost of a level of a place that a number is replaced at. Past it: as for `sliceCost`. */
const placeCost = 2

interface Inexact {
  readonly place: readonly (string | number)[]
  readonly number: string
}

function withValue(value: unknown, place: Inexact['place'], by: unknown): unknown {
  const last = place.at(-1)
  if (last === undefined) return by
  const holder = place.slice(0, -1).reduce<unknown>((part, at) => (part as Record<string, unknown>)[at], value)
  // Defines an own property, even for the key `__proto__`.
  Object.defineProperty(holder, last, { value: by, enumerable: true, configurable: true, writable: true })
  return value
}

/** Counts keys and values, both upper estimates, strings, and the depth of a text, before anything is built. */
function* countingParts(text: string) {
  let keys = 0
  let strings = 0
  let values = 0
  let open = 0
  let depth = 0
  let looked = 0
  for (let i = 0; i < text.length; i += 1) {
    looked += 1
    if (looked >= charactersPerStep) {
      looked = 0
      yield sliceCost
    }
    const c = text.charCodeAt(i)
    if (c === 0x22) {
      const end = stringEnd(text, i)
      if (end < 0) break
      looked += (end - i) / stringCharactersPerLook
      i = end
      strings += 1
    } else if (c === 0x3a) keys += 1
    else if (c === 0x2c) values += 1
    else if (c === 0x5b || c === 0x7b) {
      values += 1
      open += 1
      if (open > depth) depth = open
    } else if (c === 0x5d || c === 0x7d) open -= 1
  }
  return { keys, values, depth, strings }
}

/** Number of keys of all objects in a value; NaN if it is nested deeper than `levels`. */
function* countingKeys(value: unknown, levels: number): Generator<number, number> {
  let keys = 0
  let looked = 0
  let level = isContainer(value) ? [value] : []
  for (let left = levels; level.length > 0; left -= 1) {
    if (left === 0) return Number.NaN
    const next: object[] = []
    for (const container of level) {
      const isList = Array.isArray(container)
      const parts: readonly unknown[] = isList ? container : Object.values(container)
      if (!isList) keys += parts.length
      for (const part of parts) {
        looked += 1
        if (looked % valuesPerStep === 0) yield sliceCost
        if (isContainer(part)) next.push(part)
      }
    }
    level = next
  }
  return keys
}

export function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

interface Open {
  /** Keys seen in an object; undefined for an array. An array is the fastest set for the few that most have. */
  keys: string[] | Set<string> | undefined
  /** The key or index being read. */
  at: string | number
}

interface Scanning extends Pick<JsonBounds, 'depthMax' | 'allowsHalves'> {
  readonly numbers: Numbers | 'kept'
}

/** Walks a text that JSON.parse() accepted. Appends the places of numbers that are to be replaced to `inexact`. */
function* scanning(
  text: string,
  { depthMax, numbers, allowsHalves }: Scanning,
  inexact: Inexact[],
): Generator<number, Problem | undefined> {
  const stack: Open[] = []
  let placed = 0
  let keyNext = false
  let lists = 0
  const unicodeEscapes = text.includes('\\u')
  const here = () => placeOf(stack.map((open) => open.at))
  let looked = 0
  for (let i = 0; i < text.length; i += 1) {
    looked += 1
    if (looked >= charactersPerStep) {
      looked = 0
      yield sliceCost
    }
    const c = text.charCodeAt(i)
    const open = stack[stack.length - 1]
    if (c === 0x22) {
      const end = stringEnd(text, i)
      looked += (end - i) / stringCharactersPerLook
      const isKey = keyNext && open?.keys !== undefined
      if (isKey || unicodeEscapes) {
        const raw = text.slice(i, end + 1)
        const escaped = raw.includes('\\')
        const string: string = escaped ? JSON.parse(raw) : raw.slice(1, -1)
        if (escaped && allowsHalves !== true && !string.isWellFormed())
          return { place: here(), message: 'has half of a surrogate pair' }
        if (isKey) {
          open.at = string
          if (!addKey(open, string)) return { place: here(), message: 'is given twice' }
          if (escaped && plainEscape.test(raw)) return { place: here(), message: 'has a letter of its name escaped' }
          keyNext = false
        }
      }
      i = end
    } else if (c === 0x7b || c === 0x5b) {
      if (stack.length >= depthMax) return { place: here(), message: `is nested deeper than ${depthMax} levels` }
      stack.push(c === 0x7b ? { keys: [], at: '' } : { keys: undefined, at: 0 })
      if (c === 0x5b) lists += 1
      keyNext = c === 0x7b
    } else if (c === 0x7d || c === 0x5d) {
      if (stack.pop()?.keys === undefined) lists -= 1
      keyNext = false
    } else if (numbers !== 'any' && (c === 0x2d || (c >= 0x30 && c <= 0x39))) {
      const end = numberEnd(text, i)
      const number = text.slice(i, end)
      if ((numbers !== 'marked' || lists === 0) && !isExact(number)) {
        const message = `is a number that cannot be kept as it is written (${number.slice(0, 40)}): write it as a string`
        placed += stack.length
        if (numbers === 'exact' || (numbers === 'kept' && placed > keptPlacesMax)) return { place: here(), message }
        inexact.push({ place: stack.map(({ at }) => at), number })
      }
      looked += end - i
      i = end - 1
    } else if (c === 0x2c && open !== undefined) {
      if (open.keys === undefined) open.at = (open.at as number) + 1
      else keyNext = true
    }
  }
  return undefined
}

const fewKeys = 12

/** Adds a key. False if the object already has it. */
function addKey(open: Open, key: string): boolean {
  if (Array.isArray(open.keys)) {
    if (open.keys.includes(key)) return false
    open.keys.push(key)
    if (open.keys.length > fewKeys) open.keys = new Set(open.keys)
    return true
  }
  if (open.keys?.has(key) === true) return false
  open.keys?.add(key)
  return true
}
