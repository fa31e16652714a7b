/** Finds tools among all that a caller's list shows (contract, 20.9). */

import { LRUCache } from 'lru-cache'
import type { Allowance } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { cutText, shorten } from '../../schema/cut-text.ts'
import { isObject } from '../../schema/schema-keywords.ts'
import { TextHashes } from '../../schema/text-hashes.ts'
import { createWordIndex } from '../../search/word-index.ts'
import { wordsOf } from '../../search/words.ts'
import type { Definition } from '../gateway/tool-requests.ts'
import { joining, type Shown } from './joined-lists.ts'
import { definitionOf, type Kept } from './kept-record.ts'
import type { NameLength } from './listed-names.ts'
import type { ListedDefinition } from './rendered-offer.ts'

/** Ours: characters of a query. Past it: the rest is left out. */
const queryCharsMax = 256
/** Ours: words of a query that count. Past it: the rest is left out. */
const queryWordsMax = 8
/** Contract 20.9: the highest `limit` of a search. Past it: the result says that the arguments are wrong (`isError`). */
export const foundMax = 20
/** Tools that a search without a limit finds. */
export const foundByDefault = 5
/** Contract 20.9: characters of a tool's texts that are indexed. Past it: the rest is not found. */
const indexedCharsMax = 4096
/**
 * Contract 20.9: characters of one index, of which each takes eighty bytes where all words differ. Half a million took
 * so much memory that collecting it held everybody for 150 ms. Past it: each tool has an equal part of them, which
 * begins with its name.
 */
const indexCharsMax = 2 ** 18
/** Contract 20.9: tools in the index for one search, of which each connection may have an equal part. Past it: the search does not find the other tools. */
const indexedToolsMax = 20_000
/** Characters that take as much memory as a tool without any. */
const charsOfTool = 14
/** Characters that take as much memory as an index without any tools. */
const charsOfIndex = 150
/** Characters of all indexes that are kept. Past it: the least recently used one is made again. */
const indexesCharsMax = 2 * (indexCharsMax + indexedToolsMax * charsOfTool)
/** Characters of parsed text (`Allowance.parse`) for one of an index, which takes more. */
const parsedPerIndexed = 3
/** Cost of indexing a character, in the unit of `sliceCost`. */
const indexingCost = 15

/** Cost of looking at a tool, in the same unit. */
const lookingCost = 15

/** Contract 20.9: characters of a signature. Past it: it is cut. */
const signatureCharsMax = 400
/** Contract 20.9: characters of the description in a signature. Past it: it is cut. */
const firstLineCharsMax = 120

/** The name of a tool, of its connection, of its arguments, and its description. */
const weights = [8, 4, 2, 1]

/** The tools of some connections by their words. */
interface ToolIndex {
  readonly words: ReturnType<typeof createWordIndex>
  readonly characters: number
  /**
   * The ids of what a caller finds who sees all of them; undefined before the first search. To collect the ids of five
   * hundred tools takes half of the time of a search, and leaves others to wait for the garbage.
   */
  findable?: ReadonlySet<string>
}

/** Each id in an index is the connection's id and the tool's own name. */
const idOf = (connectionId: string, own: string) => `${connectionId}\0${own}`

/** Indexes by the kept lists that are in them: all callers share one, and see their part of it. */
export class ToolIndexes {
  readonly #kept = new LRUCache<string, ToolIndex>({
    maxSize: indexesCharsMax,
    sizeCalculation: ({ characters }) => characters + charsOfIndex,
  })

  /** The index of all tools of these connections under names of this length. Rejects with `rate_limited`. */
  async of(allowance: Allowance, shown: readonly Shown[], length: NameLength): Promise<ToolIndex> {
    const lists = shown.flatMap((one) => (one.kept === undefined ? [] : [{ ...one, kept: one.kept }]))
    const names = lists.map(({ kept, namespace, connectionId }) => `${namespace}/${connectionId} ${kept.id}`)
    const key = Bun.SHA256.hash(`${length} ${names.join()}`, 'base64')
    const known = this.#kept.get(key)
    if (known !== undefined) return known
    const { tools, charsOfEach, characters } = partsOf(lists)
    // An owner makes one large index at a time, and its memory is that owner's.
    const words = await allowance.parse(characters * parsedPerIndexed, indexing(tools, charsOfEach))
    const index: ToolIndex = { words, characters }
    this.#kept.set(key, index)
    return index
  }
}

/** The tools of an index, and how many characters each and all have in it. */
function partsOf(lists: readonly { readonly kept: Kept; readonly connectionId: string }[]) {
  // The shortest lists first: they leave the rest of their part to the others.
  const sizeOf = (list: (typeof lists)[number]) => list.kept.lists.tools.length
  const parts = new Map<object, number>()
  let left = indexedToolsMax
  for (const [done, list] of lists.toSorted((a, b) => sizeOf(a) - sizeOf(b)).entries()) {
    const part = Math.min(sizeOf(list), Math.floor(left / (lists.length - done)))
    parts.set(list, part)
    left -= part
  }
  const tools = lists.flatMap((list) =>
    list.kept.lists.tools.slice(0, parts.get(list)).map((one) => ({ connectionId: list.connectionId, one })),
  )
  const charsOfEach = Math.min(indexedCharsMax, Math.floor(indexCharsMax / Math.max(1, tools.length)))
  // A character of the whole name takes a fortieth of one that is indexed.
  const sizes = tools.map(
    ({ one }) => charsOfTool + Math.min(one.own.length + one.rest.length, charsOfEach) + one.own.length / 40,
  )
  return { tools, charsOfEach, characters: Math.ceil(sizes.reduce((sum, size) => sum + size, 0)) }
}

/** `charsOfEach`: characters of a tool's texts. */
function* indexing(tools: ReturnType<typeof partsOf>['tools'], charsOfEach: number): Work<ToolIndex['words']> {
  const index = createWordIndex(weights)
  const hashes = new TextHashes()
  for (const { connectionId, one } of tools) {
    yield one.rest.length
    let left = charsOfEach
    const fields = textsOf(connectionId, definitionOf('tools', one)).map((text) => {
      const field = text.slice(0, left)
      left -= field.length
      return field
    })
    yield (charsOfTool + charsOfEach - left) * indexingCost
    // Words that were made to share one hash would be slow to look up.
    const words = fields.map((field) => wordsOf(field).filter((word) => hashes.add(word)))
    index.add(idOf(connectionId, one.own), words)
  }
  return index
}

function textsOf(connectionId: string, { name, title, description, inputSchema }: Definition): string[] {
  const { properties } = (inputSchema ?? {}) as { properties?: object }
  const names = isObject(properties) ? Object.keys(properties).join(' ') : ''
  const text = (given: unknown) => (typeof given === 'string' ? given : '')
  return [`${text(name)} ${text(title)}`, connectionId, names, text(description)]
}

/** Whether the caller sees only a part of some connection's tools. */
export const isPart = (shown: readonly Shown[]): boolean =>
  shown.some(({ kept, lists }) => kept?.lists.tools.length !== lists?.tools.length)

/** The tools that have any word of the query, best first, as work in steps. */
export function* searching(
  shown: readonly Shown[],
  index: ToolIndex,
  query: string,
  most: number,
): Work<ListedDefinition[]> {
  // The index has all tools: its scores would show the words of hidden ones to a caller who sees only a part.
  const isBlind = isPart(shown)
  const findable = (isBlind ? undefined : index.findable) ?? (yield* findableIn(shown))
  if (!isBlind) index.findable = findable
  const words = wordsOf(query.slice(0, queryCharsMax)).slice(0, queryWordsMax)
  const hits = yield* index.words.search(words, { most, anyWord: true, isBlind, isWanted: (id) => findable.has(id) })
  const found: ListedDefinition[] = []
  for (const { id } of hits) {
    const tools = shown.find(({ connectionId }) => id.startsWith(idOf(connectionId, '')))?.lists?.tools ?? []
    yield tools.length
    found.push(tools.find(({ connectionId, own }) => idOf(connectionId, own) === id) as ListedDefinition)
  }
  return found
}

/** The ids of the tools that a caller may find. */
function* findableIn(shown: readonly Shown[]): Work<ReadonlySet<string>> {
  const findable = new Set<string>()
  for (const one of (yield* joining(shown, 'tools')).definitions) {
    yield lookingCost
    if (!(yield* isForAppsOnly(one))) findable.add(idOf(one.connectionId, one.own))
  }
  return findable
}

/** A tool that only the page of an app calls (MCP Apps). */
function* isForAppsOnly(one: ListedDefinition): Work<boolean> {
  // Only those that say something of it are parsed.
  if (!one.hasText('"visibility"')) return false
  yield one.size
  const { _meta } = one.definition
  const { ui } = (_meta ?? {}) as { ui?: { visibility?: unknown } | null }
  return JSON.stringify(ui?.visibility) === '["app"]'
}

export const callTools = ['call_read', 'call_write', 'call_destructive'] as const
export type CallTool = (typeof callTools)[number]

/** The tool by which a tool is called, by its annotations: the server's own word, which pins hold it to. */
export function callToolOf(definition: Definition | undefined): CallTool {
  const { readOnlyHint, destructiveHint } = (definition?.['annotations'] ?? {}) as Record<string, unknown>
  if (readOnlyHint === true) return 'call_read'
  return destructiveHint === false ? 'call_write' : 'call_destructive'
}

/** Names of required arguments that a line knows. Past it: an argument is shown as one that may be left out. */
const requiredNamesMax = 1000

/** One line: the arguments with their types, and the beginning of the description. */
export function signatureOf(listed: string, definition: Definition): string {
  const { properties, required } = (definition['inputSchema'] ?? {}) as Record<'properties' | 'required', unknown>
  const needed = new Set(Array.isArray(required) ? required.slice(0, requiredNamesMax) : [])
  // No more than is shown is looked at: names may have megabytes.
  const oneLine = (text: string) => cutText(text, signatureCharsMax).replaceAll(/[\s\u0085]+/g, ' ')
  let given = ''
  for (const [name, schema] of Object.entries(isObject(properties) ? properties : {})) {
    if (given.length > signatureCharsMax) break
    const { type } = (schema ?? {}) as { type?: unknown }
    const kind = typeof type === 'string' ? oneLine(type) : 'any'
    given += `${given === '' ? '' : ', '}${oneLine(name)}${needed.has(name) ? '' : '?'}: ${kind}`
  }
  const { description } = definition
  const [line = ''] = typeof description === 'string' ? description.trim().split(/\r?\n|\r/, 1) : []
  const short = shorten(line, firstLineCharsMax)
  const whole = `${listed}(${given})${short === '' ? '' : ` ${oneLine(short)}`}`
  return shorten(whole, signatureCharsMax)
}
