/** The strings and numbers of a JSON text as they are written, before it is parsed. */

/** Characters of a string that are looked at as one outside of strings: they are copied, decoded and hashed at most. */
export const stringCharactersPerLook = 10

/** The string between two quotes of JSON; unchanged if it is not a valid string. */
export function unescaped(raw: string): string {
  if (!raw.includes('\\')) return raw
  // Not by an exception, which takes ten times as long: a server may write thousands of such strings. Nor by one
  // pattern for the whole, which takes a hundred times as long for a long one, and gives up past some megabytes.
  const isString = !/["\\\u0000-\u001f]/.test(raw.replace(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/g, ''))
  return isString ? (JSON.parse(`"${raw}"`) as string) : raw
}

/** The index of the closing quote; negative if there is none. */
export function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end
}

/** A quote after an odd number of backslashes is part of the string. */
function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes += 1
  return backslashes % 2 === 1
}

/** Ours: characters of a number in JSON, more than any program writes. Past it: postern treats the number as one that two parsers may read differently. */
const jsonNumberCharsMax = 400

/** The end of a number that begins here, or the place after `most` characters of it. */
export function numberEnd(text: string, start: number, most = Number.POSITIVE_INFINITY): number {
  let end = start + 1
  while (end < text.length && end - start < most && '0123456789.eE+-'.includes(text[end] as string)) end += 1
  return end
}

/** A number with this many digits, and an exponent of up to two, is never changed by parsing. */
const digitsAlwaysExact = 15

/** True if a parser that keeps every digit reads the same number. */
export function isExact(number: string): boolean {
  if (number.length <= digitsAlwaysExact && /^[-\d.]+(?:[eE][-+]?\d{1,2})?$/.test(number)) return true
  return number.length <= jsonNumberCharsMax && decimal(number) === decimal(String(Number(number)))
}

/** A canonical form of a decimal number: its digits, and the power of ten of the last one. */
function decimal(number: string): string {
  const [, sign = '', whole = '', part = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  // A loop, because `/0+$/` is quadratic: it starts again at every zero.
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return end === 0 ? '0' : `${sign}${digits.slice(0, end)}e${Number(power) - part.length + digits.length - end}`
}
