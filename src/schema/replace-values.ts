/**
 * Replaces values within JSON, and keeps every other character as it is: numbers keep their digits, and objects their
 * order. Nothing is built of the JSON, so whoever wrote it cannot make that slow.
 */

import { sliceCost } from '../limits.ts'
import { numberEnd, stringCharactersPerLook, stringEnd, unescaped } from './json-tokens.ts'

/** Characters looked at in one step (`steps.ts`). */
const charactersPerStep = 10_000
/** Characters that take as long to look at as a replacement does: it may be sealed. */
const charactersPerReplacement = 200
/** Characters of the replaced text for each of the given one, besides `grownCharsMax`. Past it: SyntaxError. */
const grownTimesMax = 4
/** Characters of a replaced text that is short. Past it: as for `grownTimesMax`. */
const grownCharsMax = 2 ** 16
/** Levels of objects and lists, of which the path of a value keeps a part each. Past it: as for `grownTimesMax`. */
const levelsMax = 10_000
/** Characters of a name as it is written. Past it: its escapes are not decoded, as nobody looks for such a name. */
const nameCharsMax = 1000
/** Characters of a number, whose end is looked for in one step. Past it: as for `grownTimesMax`. */
const numberCharsMax = 10_000

// Codes of characters: the text has one compared for each, and makes no text of it.
const [quote, comma, minus, zero, nine, colon] = [0x22, 0x2c, 0x2d, 0x30, 0x39, 0x3a] as const
const [a, f, t, z] = [0x61, 0x66, 0x74, 0x7a] as const
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d] as const

/** Keys and indexes from the whole text to a value. The same array is changed and given again. */
export type JsonPath = readonly (string | number)[]

/** The JSON to write in place of a value; undefined to keep it. `raw`: the value's JSON; '' for an object or a list. */
export type ReplaceValue = (path: JsonPath, raw: string) => string | undefined

/** The JSON of members to put first into an object, without braces; undefined for none. */
export type InsertMembers = (path: JsonPath) => string | undefined

/**
 * The text with its replacements, as work in steps. Throws SyntaxError for a string without an end, for what only some
 * parsers read between values (`NaN`, a comment), where another member could hide, and for a text that is nested too
 * deeply, has too long a number, or would become too long.
 */
export function* replacingValues(
  text: string,
  replace: ReplaceValue,
  insert?: InsertMembers,
): Generator<number, string> {
  const path: (string | number)[] = []
  /** Whether each open container is a list. */
  const areLists: boolean[] = []
  let isKeyNext = false
  let out = ''
  let kept = 0
  let looked = 0
  /** Open containers from which on everything is dropped, because it was replaced. */
  let droppedFrom = Number.POSITIVE_INFINITY
  const write = (other: string, start: number, end: number) => {
    out += text.slice(kept, start) + other
    kept = end
    looked += charactersPerReplacement + other.length
    if (out.length > grownTimesMax * text.length + grownCharsMax) throw new SyntaxError('it repeats too much')
  }
  for (let i = 0; i < text.length; i += 1) {
    looked += 1
    if (looked >= charactersPerStep) {
      looked = 0
      yield sliceCost
    }
    const c = text.charCodeAt(i)
    if (c === quote || c === minus || (c >= zero && c <= nine) || (c >= a && c <= z)) {
      const end = scalarEnd(text, i, c)
      looked += c === quote ? (end - i) / stringCharactersPerLook : end - i
      if (isKeyNext && c !== quote) throw new SyntaxError('a name is no string')
      if (isKeyNext) path[path.length - 1] = nameOf(text.slice(i + 1, end - 1))
      else if (areLists.length < droppedFrom) {
        const other = replace(path, text.slice(i, end))
        if (other !== undefined) write(other, i, end)
      }
      isKeyNext = false
      i = end - 1
    } else if (c === openBrace || c === openBracket) {
      const other = areLists.length < droppedFrom ? replace(path, '') : undefined
      areLists.push(c === openBracket)
      if (areLists.length > levelsMax) throw new SyntaxError('it is nested too deeply')
      if (other !== undefined) {
        droppedFrom = areLists.length
        write(other, i, i)
      }
      const members = c === openBrace && areLists.length < droppedFrom ? insert?.(path) : undefined
      if (members !== undefined) {
        const isEmpty = /^\s*\}/.test(text.slice(i + 1, i + 100))
        write(isEmpty ? members : `${members},`, i + 1, i + 1)
      }
      path.push(c === openBracket ? 0 : '')
      isKeyNext = c === openBrace
    } else if (c === closeBrace || c === closeBracket) {
      if (areLists.length === droppedFrom) {
        droppedFrom = Number.POSITIVE_INFINITY
        kept = i + 1
      }
      areLists.pop()
      path.pop()
      isKeyNext = false
    } else if (c === comma) {
      if (areLists.at(-1) === true) path[path.length - 1] = (path.at(-1) as number) + 1
      else isKeyNext = true
    } else if (c !== colon && !isSpace(c)) throw new SyntaxError('it is not JSON')
  }
  return out + text.slice(kept)
}

const nameOf = (raw: string) => (raw.length > nameCharsMax ? raw : unescaped(raw))
const isSpace = (c: number) => c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09

/** The end of a text, a number, `true`, `false` or `null`. `first`: its first character. */
function scalarEnd(text: string, start: number, first: number): number {
  if (first !== quote && first >= a) {
    const word = first === t ? 'true' : first === f ? 'false' : 'null'
    if (!text.startsWith(word, start)) throw new SyntaxError('it is not JSON')
    return start + word.length
  }
  if (first !== quote) {
    const end = numberEnd(text, start, numberCharsMax + 1)
    if (end - start > numberCharsMax) throw new SyntaxError('a number is too long')
    return end
  }
  const end = stringEnd(text, start)
  if (end < 0) throw new SyntaxError('a string has no end')
  return end + 1
}
