/**
 * Mistakes that show in a policy alone (contract, 21.3): constraints that can never hold together, and those that
 * restrict nothing. Patterns are compared for every text that there is (`schema/pattern-search.ts`).
 */

import { operationKinds, resourceTypes } from '../model/constraint.ts'
import type { Finding, FindingCode } from '../model/explain.ts'
import { findingText, isAnchored } from '../schema/pattern-search.ts'
import { costToCompile } from '../schema/patterns.ts'
import type { Block, MetadataSet } from './block.ts'
import { explainingRules } from './explain.ts'
import { join, joinCost, joiningSets } from './metadata.ts'

export type Found = Pick<Finding, 'code' | 'place' | 'other' | 'words' | 'examples'>

/** Ours: cost of all searches for texts that the patterns of one policy match; together, these searches take up to half a second. Past it: postern leaves the rest undecided. */
const searchesCostMax = 12_000_000
/** Cost of comparing two sets of metadata, in the unit of `sliceCost`. */
const compareCost = 10

export interface LintedPolicy {
  readonly found: Found[]
  readonly isComplete: boolean
}

/** Yields the cost of each step before it. `hasTime`: asked before each; without it, the rest is not decided. */
export function* lintingPolicy(blocks: readonly Block[], hasTime = () => true): Generator<number, LintedPolicy> {
  const rules = rulesOf(blocks)
  const canCall = mayHave(blocks, 'resources', 'connections') && mayHave(blocks, 'operations', 'execute')
  const found = [...disjointValues(blocks), ...metadataWithoutConnections(blocks), ...allValues(blocks)]
  const joined = yield* disjointMetadata(blocks)
  const implied = yield* impliedFields(blocks)
  found.push(...(joined ?? []), ...implied)
  if (!canCall) {
    const words = 'restricts nothing: this policy does not allow execute on connections, so it lets no message through'
    return {
      found: [...found, ...rules.map(({ place }) => finding('dead-constraint', place, words))],
      isComplete: joined !== undefined,
    }
  }
  found.push(...(yield* refusedHandshake(blocks)))
  for (const { place, path, pattern } of rules) {
    yield costToCompile(pattern)
    if ((path === 'method' || path === 'params.name') && !isAnchored(pattern)) {
      const words = `${pattern} matches longer values too: write ${heldAtBegin(pattern)}$ for the whole value, or ${heldAtBegin(pattern)}.*$ if any end is meant`
      found.push(finding('unanchored-pattern', place, words))
    }
  }
  const patterns = yield* lintingPatterns(rules, hasTime)
  return { found: [...found, ...patterns.found], isComplete: joined !== undefined && patterns.isComplete }
}

/** The pattern held at its beginning, in every alternative, and not at its end. */
function heldAtBegin(pattern: string): string {
  if (pattern.includes('|')) return `^(?:${pattern})`
  return `${pattern.startsWith('^') ? '' : '^'}${pattern.replace(/(?<!\\)\$$/, '')}`
}

interface PlacedRule {
  readonly place: string
  readonly block: number
  readonly path: string
  readonly pattern: string
}

const placeOfField = (block: number, field: string) => `policy[${block}].${field === 'ttlSeconds' ? 'ttl' : field}`

export function rulesOf(blocks: readonly Block[]): PlacedRule[] {
  return blocks.flatMap(({ rpc = [] }, block) =>
    rpc.map(({ path, pattern }) => ({ place: placeOfField(block, `rpcReqMatch.${path}`), block, path, pattern })),
  )
}

export function finding(
  code: FindingCode,
  place: string,
  words: string,
  { other = null, examples = [] }: { readonly other?: string | null; readonly examples?: readonly string[] } = {},
): Found {
  return { code, place, other, words, examples: examples.slice(0, 5) }
}

type ValueField = 'namespaces' | 'resources' | 'operations'
const valueFields = ['namespaces', 'resources', 'operations'] as const

/** Whether every block that has the field has the value. */
export function mayHave(blocks: readonly Block[], field: ValueField, value: string): boolean {
  return blocks.every(({ [field]: values }) => values === undefined || (values as readonly string[]).includes(value))
}

/** The blocks that have a field, with its values. */
export function valuesIn<F extends keyof Block>(blocks: readonly Block[], field: F) {
  return blocks.flatMap(({ [field]: values }, block) =>
    values === undefined ? [] : [{ block, place: placeOfField(block, field), values: values as NonNullable<Block[F]> }],
  )
}

/** The first block whose values exclude what those before it leave, by field. */
function disjointValues(blocks: readonly Block[]): Found[] {
  return valueFields.flatMap((field) => {
    let left: ReadonlySet<string> | undefined
    const before: { place: string; values: ReadonlySet<string> }[] = []
    for (const { place, values } of valuesIn(blocks, field)) {
      const own = new Set<string>(values)
      left = left?.intersection(own) ?? own
      if (left.size === 0) {
        const other = before.find((one) => one.values.isDisjointFrom(own))?.place ?? null
        return [finding('contradiction', place, `allows no ${field} that the constraints before it allow`, { other })]
      }
      before.push({ place, values: own })
    }
    return []
  })
}

function metadataWithoutConnections(blocks: readonly Block[]): Found[] {
  const [metadata] = valuesIn(blocks, 'metadata')
  const without = valuesIn(blocks, 'resources').find(({ values }) => !values.includes('connections'))
  if (metadata === undefined || without === undefined) return []
  const words = `asks for metadata, which only connections have, and ${without.place} does not allow connections`
  return [finding('contradiction', metadata.place, words, { other: without.place })]
}

function allValues(blocks: readonly Block[]): Found[] {
  const all = { resources: resourceTypes, operations: operationKinds }
  return (['resources', 'operations'] as const).flatMap((field) =>
    valuesIn(blocks, field)
      .filter(({ values }) => all[field].every((one) => (values as readonly string[]).includes(one)))
      .map(({ place }) => finding('dead-constraint', place, `restricts nothing: it names all ${field}`)),
  )
}

/** The constraint whose metadata contradicts those before it. Undefined if there are too many sets to know. */
function* disjointMetadata(blocks: readonly Block[]): Generator<number, Found[] | undefined> {
  let joined: readonly MetadataSet[] | undefined = [[]]
  const all = valuesIn(blocks, 'metadata')
  for (const [index, { place, values }] of all.entries()) {
    joined = yield* joiningSets(joined, values)
    if (joined === undefined) return undefined
    if (joined.length > 0) continue
    let other: string | null = null
    for (const before of all.slice(0, index))
      if (other === null && (yield* areDisjoint(before.values, values))) other = before.place
    const words = 'requires another value of the same metadata than the constraints before it'
    return [finding('contradiction', place, words, { other })]
  }
  return []
}

/** Whether no metadata has all pairs of a set of each side. */
function* areDisjoint(sets: readonly MetadataSet[], others: readonly MetadataSet[]): Generator<number, boolean> {
  for (const set of sets) {
    yield joinCost * others.length
    if (others.some((one) => join(one, set) !== undefined)) return false
  }
  return true
}

/** Fields that allow all that the same field of another block allows; of two that are equal, the later one. */
function* impliedFields(blocks: readonly Block[]): Generator<number, Found[]> {
  const found: Found[] = []
  for (const field of valueFields) {
    const wider = function* (own: readonly string[], other: readonly string[]) {
      yield compareCost * (own.length + other.length)
      const names = new Set(own)
      return other.every((one) => names.has(one))
    }
    found.push(...(yield* impliedIn(valuesIn(blocks, field), wider)))
  }
  const widerSets = function* (own: readonly MetadataSet[], other: readonly MetadataSet[]) {
    for (const set of other) {
      yield compareCost * own.length * set.length
      if (!own.some((mine) => mine.every(([key, value]) => set.some(([k, v]) => k === key && v === value))))
        return false
    }
    return true
  }
  found.push(...(yield* impliedIn(valuesIn(blocks, 'metadata'), widerSets)))
  const longer = function* (own: number, other: number) {
    yield compareCost
    return own >= other
  }
  found.push(...(yield* impliedIn(valuesIn(blocks, 'ttlSeconds'), longer)))
  return found
}

function* impliedIn<V>(
  all: readonly { readonly block: number; readonly place: string; readonly values: V }[],
  isWider: (own: V, other: V) => Generator<number, boolean>,
): Generator<number, Found[]> {
  const found: Found[] = []
  for (const own of all)
    for (const other of all) {
      if (own === other) continue
      if (!(yield* isWider(own.values, other.values))) continue
      if (own.block < other.block && (yield* isWider(other.values, own.values))) continue
      const words = `restricts nothing: ${other.place} already allows no more than this`
      found.push(finding('dead-constraint', own.place, words, { other: other.place }))
      break
    }
  return found
}

/** Rules outside `params` that refuse what every client sends first. */
function* refusedHandshake(blocks: readonly Block[]): Generator<number, Found[]> {
  const refused = new Map<string, string[]>()
  for (const method of ['initialize', 'tools/list']) {
    const message = { body: { jsonrpc: '2.0', method, params: {} }, isKnown: (path: string) => path !== 'id' }
    const request = { namespace: undefined, metadata: undefined, message } as const
    const rules = yield* explainingRules(blocks, { ...request, resource: 'connections', operation: 'execute' })
    for (const { place, verdict } of rules)
      if (verdict === 'refuse') refused.set(place, [...(refused.get(place) ?? []), method])
  }
  return [...refused].map(([place, examples]) =>
    finding('handshake-refused', place, `refuses ${examples.join(' and ')}, so no client can connect`, { examples }),
  )
}

/** Patterns at one path that no text matches, and those that restrict nothing. */
function* lintingPatterns(rules: readonly PlacedRule[], hasTime: () => boolean): Generator<number, LintedPolicy> {
  const found: Found[] = []
  let isComplete = true
  let spent = 0
  function* noneMatches(all: readonly string[], none: readonly string[] = []): Generator<number, boolean> {
    const search = findingText(all, none)
    for (let step = search.next(); spent < searchesCostMax && hasTime(); step = search.next()) {
      if (step.done) {
        isComplete &&= step.value !== undefined
        return step.value === 'none'
      }
      spent += step.value
      yield step.value
    }
    isComplete = false
    return false
  }
  for (const [path, here] of Map.groupBy(rules, (rule) => rule.path)) {
    const last = here.at(-1) as PlacedRule
    if (yield* noneMatches(here.map(({ pattern }) => pattern))) {
      const pair = yield* firstPair(here, (own, other) => noneMatches([own.pattern, other.pattern]))
      const words = `no tool can be called: no text at ${path} matches all its patterns`
      found.push(finding('contradiction', pair?.own.place ?? last.place, words, { other: pair?.other.place ?? null }))
      continue
    }
    const narrowing: (PlacedRule & { readonly values: string })[] = []
    for (const own of here) {
      if (yield* noneMatches([], [own.pattern]))
        found.push(finding('dead-constraint', own.place, `${own.pattern} matches every text`))
      else narrowing.push({ ...own, values: own.pattern })
    }
    found.push(...(yield* impliedIn(narrowing, (own, other) => noneMatches([other], [own]))))
  }
  return { found, isComplete }
}

/** The first rule, and one before it or itself, of which this holds. */
function* firstPair(
  rules: readonly PlacedRule[],
  holds: (own: PlacedRule, other: PlacedRule) => Generator<number, boolean>,
): Generator<number, { own: PlacedRule; other: PlacedRule } | undefined> {
  for (const [index, own] of rules.entries())
    for (const other of rules.slice(0, index)) if (yield* holds(own, other)) return { own, other }
  return undefined
}
