/** Parses query strings strictly: unknown and repeated parameters are errors (contract, 5.4). */

import { invalidRequest } from '../errors.ts'

/** Ours: parameters of a query; an operation has at most twenty parameters and 32 filters. Past it: 400. */
export const queryParametersMax = 100

/** Call it before anything reads a query: thousands of parameters take a millisecond. Throws `invalid_request`. */
export function refuseManyParameters(url: string): void {
  let at = url.indexOf('?')
  for (let count = 0; at >= 0; at = url.indexOf('&', at + 1)) {
    count += 1
    if (count > queryParametersMax) throw invalidRequest(`the query has more than ${queryParametersMax} parameters`)
  }
}

/**
 * The decoded pairs of a request's query, in order. Throws `invalid_request` for a bad escape, a lone
 * surrogate, a name given twice, or one that is not `known`; without `known`, the caller looks at the names.
 */
export function readQuery(url: string, known?: readonly string[]): Map<string, string> {
  const pairs = new Map<string, string>()
  const start = url.indexOf('?')
  if (start < 0) return pairs
  // A fragment is never sent, so this is an unescaped character. Dropping the rest silently could drop a filter.
  if (url.includes('#', start)) throw invalidRequest('the query has an unescaped "#": write it as %23')
  for (const part of url.slice(start + 1).split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals < 0 ? part : part.slice(0, equals))
    const value = equals < 0 ? '' : decode(part.slice(equals + 1))
    if (known?.includes(name) === false) throw unknownParameter(name, known.join(', '))
    if (pairs.has(name)) throw invalidRequest(`${name}: is given twice`)
    pairs.set(name, value)
  }
  return pairs
}

/** For operations that take no parameters. Throws `invalid_request`. */
export function refuseQuery(url: string): void {
  if (!url.includes('?')) return
  for (const name of readQuery(url).keys())
    throw invalidRequest(`${name}: unknown parameter; this operation takes none`)
}

/** The error for a parameter that the operation does not have. `known`: those that it has, in words. */
export function unknownParameter(name: string, known: string): Error {
  return invalidRequest(`${name}: unknown parameter; it takes ${known}`)
}

/** A number in plain decimal digits. Throws `invalid_request`. */
export function readInteger(
  query: ReadonlyMap<string, string>,
  name: string,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  const text = query.get(name)
  if (text === undefined) return otherwise
  const number = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  const range = most === Number.MAX_SAFE_INTEGER ? `, ${least} or more` : ` from ${least} to ${most}`
  throw invalidRequest(`${name}: must be a whole number${range}`)
}

/** One of a few words. Throws `invalid_request`. Undefined if it is not given. */
export function readWord<W extends string>(
  query: ReadonlyMap<string, string>,
  name: string,
  words: readonly W[],
): W | undefined {
  const given = query.get(name)
  const word = words.find((one) => one === given)
  if (given !== undefined && word === undefined) throw invalidRequest(`${name}: must be one of ${words.join(', ')}`)
  return word
}

/** Throws `invalid_request`. Undefined if it is not given. */
export function readFlag(query: ReadonlyMap<string, string>, name: string): boolean | undefined {
  const text = query.get(name)
  if (text === undefined) return undefined
  if (text === '1' || text === 'true') return true
  if (text === '0' || text === 'false') return false
  throw invalidRequest(`${name}: must be 0, 1, true or false`)
}

function decode(text: string): string {
  // Fast path: most parts are not encoded.
  if (!/[%+]/.test(text)) return text
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    if (decoded.includes('\ufffd')) throw new URIError('a character that did not arrive whole')
    return decoded
  } catch {
    throw invalidRequest(`${text.slice(0, 100)}: is not percent-encoded UTF-8`)
  }
}
