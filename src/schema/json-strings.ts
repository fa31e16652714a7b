/** The strings of a JSON text, which is not parsed. */

/** Characters of a string that are looked at as one outside of strings: they are copied, decoded and hashed at most. */
export const stringCharactersPerLook = 10

/** The string between two quotes of JSON; as it is, if it is none. */
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
