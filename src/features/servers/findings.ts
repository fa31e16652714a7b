/**
 * What is suspicious in the definition of a tool (door contract, 6.4). It only tells: a good tool may have it, and a
 * bad one may not.
 */

import type { ServerDetail } from '../../model/server.ts'

export type Finding = 'hidden-characters' | 'mixed-script' | 'instruction-like' | 'secret-path' | 'encoded-text'

type Tool = NonNullable<ServerDetail['tools']>[number]

/** Zero-width and directional characters, tags, and control characters other than line ends and tabs. */
const hidden = new RegExp(
  [
    '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]',
    '[\\u00ad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff]',
    '[\\u{e0000}-\\u{e007f}]',
  ].join('|'),
  'u',
)

/** Phrases that tell the model to do more than use the tool. In small letters, words one space apart. */
const instructions = [
  'ignore previous instructions',
  'ignore all previous',
  'ignore the above',
  'disregard previous',
  'disregard all previous',
  'do not tell the user',
  'do not mention this',
  'without telling the user',
  'do not inform the user',
  'before using any other tool',
  'you must always call',
  'system prompt',
  '<important>',
  '<system>',
]

/** Files that hold secrets, by parts of their paths. */
const secretPaths = [
  '.ssh/',
  'id_rsa',
  'id_ed25519',
  '.aws/credentials',
  '.env',
  '.netrc',
  '/etc/passwd',
  '/etc/shadow',
]

/** As much as a key or a hidden text takes. */
const encoded = /[A-Za-z0-9+/]{120}/

/** Each finding once. */
export function findings(tool: Tool): Finding[] {
  const shown = textsOf(tool).join('\n')
  const plain = shown.toLowerCase().replaceAll(/\s+/g, ' ')
  const found: Finding[] = []
  if (hidden.test(shown)) found.push('hidden-characters')
  if (hasMixedWord(shown)) found.push('mixed-script')
  if (instructions.some((phrase) => plain.includes(phrase))) found.push('instruction-like')
  if (secretPaths.some((path) => plain.includes(path))) found.push('secret-path')
  if (encoded.test(shown)) found.push('encoded-text')
  return found
}

/** All names and strings within a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap(textsOf)
  return Object.entries(value).flatMap(([name, one]) => [name, ...textsOf(one)])
}

/** Whether a word has Latin letters and Cyrillic or Greek ones that look like them. */
function hasMixedWord(text: string): boolean {
  const words = text.match(/[\p{L}\p{M}]+/gu) ?? []
  return words.some((word) => /\p{Script=Latin}/u.test(word) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(word))
}
