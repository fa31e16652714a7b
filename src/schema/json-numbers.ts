/** Numbers in JSON as they are written: which of them a parser would change. */

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
