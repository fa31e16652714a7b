/** JSON whose numbers keep their digits: one that JavaScript would round is kept as the text it is. */

/** In browsers since 2025; TypeScript does not know them yet. */
interface RawJson {
  rawJSON?(text: string): object
  isRawJSON?(value: unknown): boolean
}
const raw = JSON as unknown as RawJson

/** Digits that each number of JavaScript keeps. */
const exactDigits = 15

function kept(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  if (typeof value !== 'number' || source === undefined || raw.rawJSON === undefined) return value
  return source.replace(/[eE].*|\D/g, '').length > exactDigits ? raw.rawJSON(source) : value
}

/** Throws SyntaxError. Its value is written by `JSON.stringify` as it was read. */
export function parseJson(text: string): unknown {
  return JSON.parse(text, kept as (name: string, value: unknown) => unknown)
}

/** Undefined: the text is not JSON. */
export function readJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Whether a value is a number, rounded or not. */
export const isNumber = (value: unknown) => typeof value === 'number' || raw.isRawJSON?.(value) === true
