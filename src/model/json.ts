/**
 * Strict JSON: what two readers could understand differently is refused. Grammar is the runtime's own
 * parser; on top of it come valid UTF-8, no byte order mark, no key twice in an object, no half of a
 * surrogate pair, and a bound on depth. No I/O.
 */

import { type Problem, placeOf } from './check.ts'
import { whereItFails } from './json-error.ts'

export type JsonResult = { readonly value: unknown } | { readonly problem: Problem }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of some bytes, or undefined when they are not UTF-8 or begin with a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * 'exact' refuses a number that would not come out as it was written, 20 digits say: for what is kept or sent on as
 * something else than its own text.
 */
export type Numbers = 'any' | 'exact'

/** From bytes, which must be UTF-8. */
export function readJsonBytes(bytes: Uint8Array, depthMax: number, numbers: Numbers = 'any'): JsonResult {
  const text = decodeUtf8(bytes)
  if (text === undefined) return { problem: { place: '', message: 'is not UTF-8, or begins with a byte order mark' } }
  return readJson(text, depthMax, numbers)
}

export function readJson(text: string, depthMax: number, numbers: Numbers = 'any'): JsonResult {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const detail = error instanceof Error ? error.message.replace(/^JSON Parse error: /, '') : ''
    return { problem: { place: '', message: `is not JSON: ${detail}${whereItFails(text)}` } }
  }
  // Shorter ones always come out as they were.
  const areNumbersAtRisk = numbers === 'exact' && /[\d.]{16}|\d[eE]/.test(text)
  if (!areNumbersAtRisk && isPlain(text, value, depthMax)) return { value }
  const problem = scan(text, depthMax, areNumbersAtRisk)
  return problem === undefined ? { value } : { problem }
}

/**
 * True where nothing can be wrong: without escapes there is no half of a surrogate pair, and with as many keys in the
 * value as colons between the strings none came twice. Most texts are so, and this is a fraction of the walk.
 */
function isPlain(text: string, value: unknown, depthMax: number): boolean {
  if (text.includes('\\')) return false
  let colons = 0
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i)
    if (c === 0x22) i = text.indexOf('"', i + 1)
    else if (c === 0x3a) colons += 1
  }
  return keysIn(value, depthMax) === colons
}

/** Of all objects in the value; NaN where it is nested deeper than so many levels. */
function keysIn(value: unknown, levels: number): number {
  if (typeof value !== 'object' || value === null) return 0
  if (levels === 0) return Number.NaN
  const parts: unknown[] = Array.isArray(value) ? value : Object.values(value)
  let keys = Array.isArray(value) ? 0 : parts.length
  for (const part of parts) keys += keysIn(part, levels - 1)
  return keys
}

interface Open {
  /** Keys seen in an object; undefined in a list. Most objects have few, and a list of few is the fastest set. */
  keys: string[] | Set<string> | undefined
  /** The key or position being read. */
  at: string | number
}

/** Walks text that the parser has accepted, so only strings and brackets need a look. */
function scan(text: string, depthMax: number, looksAtNumbers: boolean): Problem | undefined {
  const stack: Open[] = []
  let keyNext = false
  const unicodeEscapes = text.includes('\\u')
  const here = () => placeOf(stack.map((open) => open.at))
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i)
    const open = stack[stack.length - 1]
    if (c === 0x22) {
      const end = stringEnd(text, i)
      const isKey = keyNext && open?.keys !== undefined
      if (isKey || unicodeEscapes) {
        const raw = text.slice(i, end + 1)
        const escaped = raw.includes('\\')
        const string: string = escaped ? JSON.parse(raw) : raw.slice(1, -1)
        if (escaped && !string.isWellFormed()) return { place: here(), message: 'has half of a surrogate pair' }
        if (isKey) {
          open.at = string
          if (!addKey(open, string)) return { place: here(), message: 'is given twice' }
          keyNext = false
        }
      }
      i = end
    } else if (c === 0x7b || c === 0x5b) {
      if (stack.length >= depthMax) return { place: here(), message: `is nested deeper than ${depthMax} levels` }
      stack.push(c === 0x7b ? { keys: [], at: '' } : { keys: undefined, at: 0 })
      keyNext = c === 0x7b
    } else if (c === 0x7d || c === 0x5d) {
      stack.pop()
      keyNext = false
    } else if (looksAtNumbers && (c === 0x2d || (c >= 0x30 && c <= 0x39))) {
      const end = numberEnd(text, i)
      const number = text.slice(i, end)
      if (decimal(number) !== decimal(String(Number(number)))) {
        const message = `is a number that cannot be kept as it is written (${number.slice(0, 40)}): write it as a string`
        return { place: here(), message }
      }
      i = end - 1
    } else if (c === 0x2c && open !== undefined) {
      if (open.keys === undefined) open.at = (open.at as number) + 1
      else keyNext = true
    }
  }
  return undefined
}

const fewKeys = 12

/** False when the object has the key already. */
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

function numberEnd(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && '0123456789.eE+-'.includes(text[end] as string)) end += 1
  return end
}

/** The same for two spellings of one decimal number: its digits and the power of ten of the last one. */
function decimal(number: string): string {
  const [, sign = '', whole = '', part = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  return significant === ''
    ? '0'
    : `${sign}${significant}e${Number(power) - part.length + digits.length - significant.length}`
}

function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end
}

/** A quote after an odd number of backslashes belongs to the string. */
function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1
  return backslashes % 2 === 1
}
