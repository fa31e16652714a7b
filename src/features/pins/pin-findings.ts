/**
 * Suspicious parts in the definition of a tool (contract, 9.9 and 20.11). A finding is a hint for people, and no pin
 * depends on it: a harmless tool may have one, and a harmful tool may have none.
 */

import type { Work } from '../../fairness/turns.ts'
import type { PinFinding } from '../../model/pins.ts'
import { showHiddenCharacters } from '../../ops/escape-control.ts'

/** Joiners within words of scripts that join letters, such as Persian. The Latin script has no use for them. */
const joiners =
  /(?<=[[\p{L}\p{M}]--[\p{Script=Latin}\p{Script=Inherited}]])[\u200c\u200d](?=[\p{L}--\p{Script=Latin}])/gv

/** Private-use and unassigned characters: nobody knows how they look. */
const unknownCharacters = /[\p{Co}\p{Cn}]/u

/** Letters that look like Latin ones (Unicode's confusables.txt). Others are no disguise: 5 μs, Δt. */
const latinLookalikes = /[АВЕЅІЈКМНОРСТУХЬасеѕіјорухһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυι]/u

/** Texts that are searched have words one space apart. */
const signs: readonly (readonly [PinFinding, readonly RegExp[]])[] = [
  [
    // Words to a model rather than to a person.
    'instruction-like',
    [
      /<\/?(?:important|system|instructions?|secret|hidden)>/i,
      /\b(?:ignore|disregard|forget) (?:all |any |the )?(?:previous|prior|above|earlier|other)\b/i,
      /\b(?:do not|don't|never) (?:tell|mention|inform|show|reveal)\b/i,
      /\b(?:you must|always|before (?:using|calling)[^.]{0,60}) (?:first )?(?:call|use|read|send|include|pass)\b/i,
      /\bwithout (?:telling|informing) the user\b|\bsystem prompt\b|\bbefore using any other tool\b/i,
    ],
  ],
  [
    'secret-path',
    [
      // A folder or file of this name, and no www.docker.com.
      /(?<![\w)\]])\.(?:ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc)\b|\.ssh\/|\.aws\/credentials|\.netrc/i,
      // Not process.env.
      /(?<!\bprocess|[)\]])\.env\b/i,
      /id_rsa|id_ed25519|\bid_ecdsa\b|\bwallet\.dat\b|\/etc\/(?:passwd|shadow)/i,
      /\b(?:credentials|mcp|claude_desktop_config)\.json\b/i,
    ],
  ],
  [
    'encoded-text',
    [
      // Longer than a hash in hex; a path has a slash every few characters.
      /[A-Za-z0-9+=]{80,}|[A-Za-z0-9+/]{120}/,
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

/** Characters that are searched in one step (`steps.ts`). */
const searchedPerStep = 16 * 1024
/** Characters before a step that are searched with it, which a finding may have. */
const searchedAgain = 1024
/** Cost of searching a character, in the unit of `sliceCost`; 120 nanoseconds. Past it: as for `sliceCost`. */
const findingsCharacterCost = 3

/** All findings, in the order in which a response lists them. */
const order = ['hidden-characters', 'mixed-script', ...signs.map(([finding]) => finding), 'other-tool'] as const

/** As work in steps. `others`: telling names of tools of other connections. */
export function* findingsIn(text: string, others: ReadonlySet<string> = new Set()): Work<PinFinding[]> {
  const found = new Set<PinFinding>()
  for (let at = 0; at === 0 || at < text.length; at += searchedPerStep) {
    // From a space on, where there is one: half a word would look like another one.
    const space = text.lastIndexOf(' ', at - searchedAgain)
    const from = at === 0 ? 0 : Math.max(space, at - 2 * searchedAgain)
    const part = text.slice(from, at + searchedPerStep)
    yield part.length * findingsCharacterCost
    for (const finding of findingsInPart(part, others)) found.add(finding)
  }
  return order.filter((finding) => found.has(finding))
}

function findingsInPart(text: string, others: ReadonlySet<string>): PinFinding[] {
  const written = text.replaceAll(joiners, '')
  const spaced = text.replaceAll(/\s+/g, ' ')
  const found: PinFinding[] = []
  if (showHiddenCharacters(written) !== written || unknownCharacters.test(written)) found.push('hidden-characters')
  if (hasMixedWord(text)) found.push('mixed-script')
  for (const [finding, patterns] of signs) if (patterns.some((one) => one.test(spaced))) found.push(finding)
  const names = others.size === 0 ? [] : (text.match(word) ?? [])
  if (names.some((one) => others.has(one.replace(/[.-]$/, '')))) found.push('other-tool')
  return found
}

/** Whether a word has Latin letters, and others that look like them. */
function hasMixedWord(text: string): boolean {
  const words = text.match(/[\p{L}\p{M}]+/gu) ?? []
  return words.some((word) => /\p{Script=Latin}/u.test(word) && latinLookalikes.test(word))
}
