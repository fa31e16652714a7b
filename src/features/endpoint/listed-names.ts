/**
 * The names under which one endpoint lists the tools and prompts of many connections (contract, 20.2). A name depends
 * on nothing but the connection's id and its own name of the tool, so every replica makes the same one.
 */

/** Characters that a listed name may have: 46 leave room for what clients put in front of it. */
export const nameLengths = [46, 64] as const
export type NameLength = (typeof nameLengths)[number]

/** `_` and the digits of the hash, at the end of a hashed name. */
const suffixChars = 9
const suffix = /_[0-9a-f]{8}$/
const separator = '__'

const plain = /^[A-Za-z0-9_-]+$/

/** The name that a list shows for a connection's own name of a tool or prompt. */
export function listedName(connectionId: string, own: string, length: NameLength): string {
  const joined = connectionId + separator + own
  // The first separator of the joined name ends this id.
  const isClearId = plain.test(connectionId) && !connectionId.includes(separator) && !connectionId.endsWith('_')
  if (isClearId && plain.test(own) && joined.length <= length && !suffix.test(joined)) return joined
  // Names may be long, and few characters count.
  const readable = readableIn(joined.slice(0, 2 * length)).slice(0, length - suffixChars)
  const hash = Bun.SHA256.hash(`${connectionId}\0${own}`, 'hex')
  return `${readable}_${hash.slice(0, suffixChars - 1)}`
}

/** One character for each code point: with `u`, a surrogate pair is one. */
const readableIn = (text: string) => text.replaceAll(/[^A-Za-z0-9_-]/gu, '_')

/** Whether a tool or prompt of the connection may have this listed name, which ends with a hash. */
export function mayHaveName(connectionId: string, listed: string): boolean {
  const readable = listed.slice(0, -suffixChars)
  const start = readableIn(connectionId) + separator
  return readable.startsWith(start) || start.startsWith(readable)
}

/** `listed`: as the caller's list shows it. `joined`: an id and the connection's own name. `bare`: without an id. */
type CalledName =
  | { readonly kind: 'listed' }
  | { readonly kind: 'joined'; readonly connectionId: string; readonly own: string }
  | { readonly kind: 'bare' }

export function readCalledName(name: string): CalledName {
  const dot = name.indexOf('.')
  if (dot < 0 && suffix.test(name)) return { kind: 'listed' }
  const underscores = name.indexOf(separator)
  if (dot < 0 && underscores < 0) return { kind: 'bare' }
  const isDotFirst = dot >= 0 && (underscores < 0 || dot < underscores)
  const [at, width] = isDotFirst ? [dot, 1] : [underscores, separator.length]
  return { kind: 'joined', connectionId: name.slice(0, at), own: name.slice(at + width) }
}
