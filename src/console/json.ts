/** JSON whose numbers keep their digits: one that JavaScript would write otherwise is kept as the text it is. */

/** In browsers since 2025; TypeScript does not know them yet. */
interface RawJson {
  rawJSON?(text: string): object
  isRawJSON?(value: unknown): boolean
}
const raw = JSON as unknown as RawJson

function kept(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  if (typeof value !== 'number' || source === undefined || raw.rawJSON === undefined) return value
  return String(value) === source ? value : raw.rawJSON(source)
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

/** A value that is a JSON object; undefined for any other, such as a list or null. */
export const asObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumber(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined

/** Whether a value is a number, also one that is kept as its text because JavaScript would write it otherwise. */
export const isNumber = (value: unknown) => typeof value === 'number' || raw.isRawJSON?.(value) === true

/** The number that a value is, rounded; undefined for any other. */
export const numberOf = (value: unknown) => (isNumber(value) ? Number(JSON.stringify(value)) : undefined)
