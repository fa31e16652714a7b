/**
 * How metadata is compared. A filter compares strings as they are and other values by their JSON text. A constraint
 * matches strings only, and knows `connectionId`, which no metadata overrides (contract, 4.2 and 5.3).
 */

import { filterText } from '../model/connection.ts'
import type { MetadataSet } from './block.ts'

export interface MetadataFacts {
  readonly connectionId: string
  readonly metadata: Readonly<Record<string, unknown>> | null
}

/** The metadata key that means the connection's own id. */
export const connectionIdFact = 'connectionId'

/** True if all pairs of at least one set match. */
export function constraintAllows(sets: readonly MetadataSet[], facts: MetadataFacts): boolean {
  return sets.some((set) => set.every(([key, value]) => factOf(facts, key) === value))
}

/** True if the metadata has this key with this value. A filter does not know `connectionId` as a fact. */
export function filterAllows(facts: MetadataFacts, key: string, value: string): boolean {
  const { metadata } = facts
  return metadata !== null && Object.hasOwn(metadata, key) && filterText(metadata[key]) === value
}

/** Ours: sets of metadata that postern makes when it combines several constraints. Past it: postern treats the sets as unknown. */
const joinedSetsMax = 1000
/** Cost of joining two sets, in the unit of `sliceCost`. */
export const joinCost = 10

/** The pairs of both sets; undefined if they want two values of one key. */
export function join(one: MetadataSet, other: MetadataSet): MetadataSet | undefined {
  const both = new Map(one)
  for (const [key, value] of other) {
    if ((both.get(key) ?? value) !== value) return undefined
    both.set(key, value)
  }
  return [...both].sort(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * Each set that is joined of one of each side, once: metadata matches both sides exactly if it has all pairs of one of
 * these. Undefined if there are too many. Yields as `decideOnMessage`.
 */
export function* joiningSets(
  sets: readonly MetadataSet[],
  others: readonly MetadataSet[],
): Generator<number, readonly MetadataSet[] | undefined> {
  const joined = new Map<string, MetadataSet>()
  for (const one of sets)
    for (const other of others) {
      yield joinCost * (one.length + other.length + 1)
      const both = join(one, other)
      if (both !== undefined) joined.set(JSON.stringify(both), both)
      if (joined.size > joinedSetsMax) return undefined
    }
  return [...joined.values()]
}

function factOf({ connectionId, metadata }: MetadataFacts, key: string): unknown {
  if (key === connectionIdFact) return connectionId
  return metadata !== null && Object.hasOwn(metadata, key) ? metadata[key] : undefined
}
