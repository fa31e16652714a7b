/** Messages that one policy allows and another does not, made of the patterns of both (contract, 21.5). */

import { type FoundText, findingText } from '../schema/pattern-search.ts'
import { costToAsk, matches } from '../schema/patterns.ts'
import type { Block } from './block.ts'
import { methodsWith, type RpcRule } from './rpc-match.ts'

/** Texts by path. Undefined: the message has nothing there. */
export type MessageTexts = ReadonlyMap<string, string | undefined>

export interface WiderMessages {
  /** Some that the new policy allows, and for each rule of the old one some that break it as well. */
  readonly messages: MessageTexts[]
  readonly values: number
  readonly isComplete: boolean
}

/** Methods that clients send, which are better examples than any others. */
const methods = [
  'tools/call',
  'tools/list',
  'prompts/get',
  'prompts/list',
  'resources/read',
  'resources/list',
  'initialize',
]
/** The texts of a message where no rule asks for anything. */
const ordinary: MessageTexts = new Map([
  ['jsonrpc', '2.0'],
  ['method', 'tools/call'],
  ['params.name', 'any_tool'],
])

/** Methods to which rules below `params` do not apply (`isPreliminary`). */
const preliminary = '^(?:initialize|ping|server/discover|tools/list|notifications/.*)$'

/** `tools`: known ones, which are better examples. `hasTime`: asked before what may take a tenth of a second. */
export function* findingWiderMessages(
  { old, newer }: { readonly old: readonly Block[]; readonly newer: readonly Block[] },
  tools: readonly string[],
  hasTime: () => boolean,
): Generator<number, WiderMessages> {
  const asked = Map.groupBy(rulesOf(newer), ({ path }) => path)
  const usual = new Map<string, readonly string[]>([
    ['method', methods],
    ['jsonrpc', ['2.0']],
    ['params.name', tools],
  ])
  let values = 0
  let isComplete = true
  type Patterns = readonly string[]
  /** A text that matches the new policy's rules and `also`, and none of `none`. */
  function* textAt(path: string, none: Patterns = [], also: Patterns = []): Generator<number, string | undefined> {
    const all = [...(asked.get(path) ?? []).map(({ pattern }) => pattern), ...also]
    values += 1
    const found: FoundText = hasTime() ? yield* findingText(all, none) : undefined
    isComplete &&= found !== undefined
    if (typeof found !== 'object') return undefined
    for (const text of usual.get(path) ?? []) {
      yield [...all, ...none].reduce((sum, pattern) => sum + costToAsk(pattern, text), 0)
      if (!hasTime()) break
      if (all.every((one) => matches(one, text)) && !none.some((one) => matches(one, text))) return text
    }
    return found.text
  }
  const base = new Map(ordinary)
  if (tools[0] !== undefined) base.set('params.name', tools[0])
  for (const path of asked.keys()) {
    if (path === 'method') continue
    const text = yield* textAt(path)
    if (text === undefined) return { messages: [], values, isComplete }
    base.set(path, text)
  }
  // One of a method to which all rules apply, and one of any other.
  const bases: MessageTexts[] = []
  const having = [...asked.keys()].flatMap((path) => [...(methodsWith(path) ?? [])].join('|') || [])
  const havingAll = having.map((names) => `^(?:${names})$`)
  const kinds = [[[preliminary], havingAll], ...(havingAll.length > 0 ? [[[preliminary]]] : []), [[]]]
  for (const [none, also] of kinds) {
    const method = yield* textAt('method', none, also)
    if (method !== undefined) bases.push(new Map(base).set('method', method))
  }
  const messages: MessageTexts[] = [...bases]
  for (const { path, pattern } of rulesOf(old)) {
    const texts = [
      yield* textAt(path, [pattern]),
      path === 'method' ? yield* textAt(path, [pattern, preliminary], havingAll) : undefined,
      path === 'method' && havingAll.length > 0 ? yield* textAt(path, [pattern, preliminary]) : undefined,
    ]
    for (const one of bases) {
      if (!asked.has(path)) messages.push(new Map(one).set(path, undefined))
      for (const text of texts) if (text !== undefined) messages.push(new Map(one).set(path, text))
    }
  }
  return { messages, values, isComplete }
}

function rulesOf(blocks: readonly Block[]): readonly RpcRule[] {
  return blocks.flatMap(({ rpc = [] }) => rpc)
}

/** The id of a message of which no rule asks for it. */
export const ordinaryId = 1
/** The message that has these texts; undefined if one of them would stand within another. */
export function messageOf(texts: MessageTexts): Record<string, unknown> | undefined {
  // Without a prototype: a path may have a part `__proto__`, which is a name like any other.
  const message: Record<string, unknown> = Object.assign(empty(), { id: ordinaryId, params: empty() })
  for (const [path, text] of texts) {
    const names = path.split('.')
    const last = names.pop() as string
    let at: Record<string, unknown> = message
    for (const name of names) {
      at[name] ??= empty()
      if (typeof at[name] !== 'object') return undefined
      at = at[name] as Record<string, unknown>
    }
    if (text === undefined) delete at[last]
    else if (typeof at[last] === 'object' && Object.keys(at[last] as object).length > 0) return undefined
    else at[last] = text
  }
  return message
}

const empty = (): Record<string, unknown> => Object.create(null)
