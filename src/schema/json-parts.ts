/** Counts the parts of JSON while its bytes arrive, so that nothing is built of what has too many. */

import type { Counted } from './json.ts'
import { unescaped } from './json-tokens.ts'
import { TextHashes } from './text-hashes.ts'

/** Bytes of a text whose hash is looked at while a response arrives. Past it: not looked at, as such texts are few. */
const hashedTextBytesMax = 256

const [quote, backslash, lineEnd, colon, comma] = [0x22, 0x5c, 0x0a, 0x3a, 0x2c]
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

export interface ValuesOfAll {
  readonly max: number
  values: number
}

interface CountedParts extends Counted {
  /** Counts the values of several texts together. */
  readonly all?: ValuesOfAll
}

/**
 * For JSON, and for event streams whose data is JSON. Keys and values are counted by colons, commas and brackets
 * outside of strings. A line end is in no string, so that a quote elsewhere in an event stream hides one line at most.
 * Lines outside of strings, of which each event has some, may be as many as values. The function adds bytes, and says
 * in words that continue a sentence which bound is exceeded; undefined while none is.
 */
export function createPartsCounter({ depthMax, keysMax, valuesMax, all }: CountedParts) {
  let [keys, values, depth, lines] = [0, 0, 0, 0]
  let isInString = false
  let isEscaped = false
  const hashes = new TextHashes()
  let haveOneHash = false
  /** The beginning of a string. Longer ones are too few to matter. */
  const string = Buffer.alloc(hashedTextBytesMax)
  let length = 0

  function addInString(byte: number): void {
    if (byte === lineEnd || (byte === quote && !isEscaped)) {
      isInString = false
      if (length <= string.length && !hashes.add(unescaped(string.toString('utf8', 0, length)))) haveOneHash = true
    } else if (length < string.length) string[length] = byte
    length += 1
    isEscaped = byte === backslash && !isEscaped && isInString
  }

  function addOutside(byte: number): void {
    if (byte === quote) {
      isInString = true
      length = 0
    } else if (byte === lineEnd) lines += 1
    else if (byte === colon) keys += 1
    else if (byte === comma) values += 1
    else if (byte === openArray || byte === openObject) {
      values += 1
      depth += 1
    } else if (byte === closeArray || byte === closeObject) depth = Math.max(0, depth - 1)
  }

  return (bytes: Uint8Array): string | undefined => {
    const before = values
    for (const byte of bytes) {
      if (isInString) addInString(byte)
      else addOutside(byte)
      if (depth > depthMax) return `is nested deeper than ${depthMax}`
      if (haveOneHash) return 'has too many texts that share one hash'
    }
    if (lines > valuesMax) return `has more than ${valuesMax} lines`
    if (keys > keysMax) return `has more than ${keysMax} keys`
    if (values > valuesMax) return `has more than ${valuesMax} values`
    if (all === undefined) return undefined
    all.values += values - before
    return all.values > all.max ? `has more than ${all.max} values in all` : undefined
  }
}
