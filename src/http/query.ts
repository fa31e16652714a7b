/** Parses query strings strictly: unknown and repeated parameters are errors (contract 5). */

import { invalidRequest } from '../errors.ts'

/**
 * The decoded pairs of a request's query, in order. Throws `invalid_request` for a bad escape, a lone
 * surrogate, or a name given twice.
 */
export function readQuery(url: string): Map<string, string> {
  const pairs = new Map<string, string>()
  const start = url.indexOf('?')
  if (start < 0) return pairs
  // A fragment is never sent, so this is an unescaped character. Dropping the rest silently could drop a filter.
  if (url.includes('#', start)) throw invalidRequest('#: must be percent-encoded')
  for (const part of url.slice(start + 1).split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals < 0 ? part : part.slice(0, equals))
    const value = equals < 0 ? '' : decode(part.slice(equals + 1))
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
