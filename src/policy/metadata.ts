/**
 * How metadata is compared. A filter compares strings as they are and other values by their JSON text. A constraint
 * matches strings only, and has one more fact: `connectionId`, which comes from the record and cannot be overridden by
 * metadata (contract, 4.2 and 5.3).
 */

import { filterText } from '../model/connection.ts'
import type { MetadataSet } from './block.ts'

/** The facts about one connection. */
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

function factOf({ connectionId, metadata }: MetadataFacts, key: string): unknown {
  if (key === connectionIdFact) return connectionId
  return metadata !== null && Object.hasOwn(metadata, key) ? metadata[key] : undefined
}
