/**
 * Suspicious parts in the definition of a tool (contract, 9.9). A finding is a hint: a harmless tool may have one, and
 * a harmful tool may have none.
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

/**
 * Joiners where writing needs them: within emoji, and within words of scripts that join letters, such as Persian. The
 * Latin script has no use for them.
 */
const joiners = new RegExp(
  [
    '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})',
    '(?<=[[\\p{L}\\p{M}]--[\\p{Script=Latin}\\p{Script=Inherited}]])[\\u200c\\u200d](?=[\\p{L}--\\p{Script=Latin}])',
  ].join('|'),
  'gv',
)

/** Letters that look like Latin ones (Unicode's confusables.txt). Others are no disguise: 5 μs, Δt. */
const latinLookalikes = /[АВЕЅІЈКМНОРСТУХЬасеѕіјорухһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυι]/u

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

/** Files that hold secrets, by parts of their paths. `.env` is one too: `process.env` and `event.envelope` are not. */
const secretPath = new RegExp(
  [
    '\\.ssh/|id_rsa|id_ed25519|\\.aws/credentials|\\.netrc|/etc/passwd|/etc/shadow',
    '(?<![a-z0-9_)\\]])\\.env(?![a-z0-9_])',
  ].join('|'),
)

/** As much as a key or a hidden text takes. */
const encoded = /[A-Za-z0-9+/]{120}/

/** Each finding once. */
export function findings(tool: Tool): Finding[] {
  const shown = textsOf(tool).join('\n')
  const plain = shown.toLowerCase().replaceAll(/\s+/g, ' ')
  const found: Finding[] = []
  if (hidden.test(shown.replaceAll(joiners, ''))) found.push('hidden-characters')
  if (hasMixedWord(shown)) found.push('mixed-script')
  if (instructions.some((phrase) => plain.includes(phrase))) found.push('instruction-like')
  if (secretPath.test(plain)) found.push('secret-path')
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

/** Whether a word has Latin letters, and others that look like them. */
function hasMixedWord(text: string): boolean {
  const words = text.match(/[\p{L}\p{M}]+/gu) ?? []
  return words.some((word) => /\p{Script=Latin}/u.test(word) && latinLookalikes.test(word))
}
