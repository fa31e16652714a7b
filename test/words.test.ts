/**
 * The words of everything that users read: the pages of the executable, the README, the help of commands, messages, and
 * the descriptions of the API. `docs/glossary.md` says the product's words; these are words that it has no use for.
 */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openApiDocument } from '../src/features/reference/document.ts'
import { messages } from '../src/tools/messages.ts'

/** Never right in a text for users, and what to write instead. */
const forbidden: readonly (readonly [word: RegExp, instead: string])[] = [
  // Words of the source, or of the contracts.
  [/\bdoors?\b/i, 'nothing: the name of a contract'],
  [/\b(?:fast )?lanes?\b/i, 'nothing: a part of the source'],
  [/\bwires?\b/i, 'connection'],
  [/\bhops?\b/i, 'a call through postern'],
  [/\beras?\b/i, 'revision of MCP'],
  [/\bspool/i, 'temporary file'],
  [/\b(?:a|its|and) blocks?\b/i, 'constraint'],
  // Several words for one thing.
  [/\bplatforms?\b/i, 'postern'],
  [/(?<![-`])\bupstreams?\b(?![_-])/i, 'MCP server; the word is for flags and metrics'],
  [/\bthe original\b/i, 'Smithery'],
  [/\bwho leads\b|\bleads? (?:a|it|the) namespaces?\b/i, 'manages'],
  [/\breach(?:es)? (?:everything|nothing)\b/i, 'has access to'],
  [/\bmighty\b/i, 'powerful'],
  // The dialect.
  [/\btold\b/i, 'says, reports'],
  [/\b(?:is|are|was|were) (?:not )?of\b/i, 'belongs to'],
  [/\bgoes\b|\b(?:go|went|going) on\b/i, 'continues'],
  [/\b(?:anew|afresh)\b/i, 'again'],
  [/\baside\b/i, 'except'],
  [/\bof (?:its|their|your|our|his|her|one's) own\b/i, 'its own …'],
  [/\bshall\b/i, 'should'],
  [/\bwho(?:so)?ever\b/i, 'everybody who, or the name of the actor'],
  [/\bspeaks? no\b|\bthat (?:is|are) none\b/i, 'does not speak, is not'],
  [/(?:^|[.:;] )Where (?!to\b)|; where /, 'if'],
  [/(?:^|[.:;?!] |- )(?:Who|What)(?:m|se|ever)?\b(?:[^.?!|]|[.?!](?!\s|$))*(?:[.!|](?=\s|$)|$)/, 'a noun'],
]

const root = resolve(import.meta.dir, '..')

/** The prose of a page by its lines: no code, and no first cell of a row of the glossary, which defines a word. */
function proseOf(file: string): Text[] {
  const lines = readFileSync(join(root, file), 'utf8')
    .replaceAll(/^```[^]*?^```$/gm, (code) => code.replaceAll(/[^\n]/g, ''))
    .replaceAll(/\]\([^)]*\)/g, ']')
    .split('\n')
  return lines.map((line, index) => ({
    place: `${file}:${index + 1}`,
    text: line.replaceAll(/`[^`]*`/g, '`…`').replace(/^\| \*\*[^*]*\*\*/, '| …'),
  }))
}

interface Text {
  readonly place: string
  readonly text: string
}

function descriptionsIn(value: unknown, place: string): Text[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, part]) => {
    const inside = `${place}/${key}`
    if (typeof part !== 'string') return descriptionsIn(part, inside)
    return key === 'description' || key === 'summary' ? [{ place: inside, text: part }] : []
  })
}

const pages = [...new Bun.Glob('docs/*.md').scanSync(root), 'README.md', 'CHANGELOG.md', 'SECURITY.md'].sort()

describe('words that are never right', () => {
  // The help of commands is in docs/configuration.md.
  const texts: readonly (readonly [where: string, texts: readonly Text[]])[] = [
    ...pages.map((file) => [file, proseOf(file)] as const),
    ['messages', messages()],
    ['OpenAPI', descriptionsIn(openApiDocument('http://localhost:8787'), '')],
  ]
  for (const [where, said] of texts) {
    test(`none in ${where}`, () => {
      expect(said.length).toBeGreaterThan(10)
      const found = said.flatMap(({ place, text }) =>
        forbidden.flatMap(([word, instead]) => (word.test(text) ? [{ place, text, word: word.source, instead }] : [])),
      )
      expect(found).toEqual([])
    })
  }
})
