/** Signs of a definition that people should read with care. They only warn: no pin depends on them. */

import type { PinFinding } from '../../model/pins.ts'
import { hasInvisible } from './shown-text.ts'

const signs: readonly (readonly [PinFinding, readonly RegExp[]])[] = [
  [
    'mixed-script',
    // Letters of Greek or Cyrillic within a word of Latin ones.
    [/[a-zA-Z][\u{370}-\u{3ff}\u{400}-\u{52f}]/u, /[\u{370}-\u{3ff}\u{400}-\u{52f}][a-zA-Z]/u],
  ],
  [
    // Words to a model rather than to a person.
    'instruction-like',
    [
      /<\/?(?:important|system|instructions?|secret|hidden)>/i,
      /\b(?:ignore|disregard|forget) (?:all |any |the )?(?:previous|prior|above|earlier|other)\b/i,
      /\b(?:do not|don't|never) (?:tell|mention|inform|show|reveal)\b/i,
      /\b(?:you must|always|before (?:using|calling)[^.]{0,60}) (?:first )?(?:call|use|read|send|include|pass)\b/i,
    ],
  ],
  [
    'secret-path',
    [
      /\.(?:ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc|env)\b/i,
      /\bid_(?:rsa|ed25519|ecdsa)\b|\bwallet\.dat\b|\/etc\/(?:passwd|shadow)\b/i,
      /\b(?:credentials|mcp|claude_desktop_config)\.json\b/i,
    ],
  ],
  [
    'encoded-text',
    [
      // Longer than a hash in hex; a path has a slash every few characters.
      /[A-Za-z0-9+=]{80,}/,
      /(?:[0-9a-fA-F]{2}[\s:]){40,}/,
      /(?:(?:%|\\x)[0-9a-fA-F]{2}){20,}/,
    ],
  ],
]

/** Words that may be the name of a tool. */
const word = /[A-Za-z0-9_.-]{4,128}/g

/** Whether a name is no ordinary word, which any text may have: it has a separator, or a capital letter inside. */
export function isTellingName(name: string): boolean {
  return /[_.-]|[a-z][A-Z]/.test(name)
}

/** `others`: telling names of tools of other connections. `text`: the texts of a definition, or instructions. */
export function findingsIn(text: string, others: ReadonlySet<string>): PinFinding[] {
  const found = signs.flatMap(([finding, patterns]) => (patterns.some((one) => one.test(text)) ? [finding] : []))
  if (hasInvisible(text)) found.unshift('hidden-characters')
  const names = others.size === 0 ? [] : (text.match(word) ?? [])
  if (names.some((one) => others.has(one.replace(/[.-]$/, '')))) found.push('other-tool')
  return found
}
