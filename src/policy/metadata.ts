/**
 * How metadata compares. A filter compares strings as they are and other values by their JSON text; a
 * constraint matches strings only, and knows one fact more: `connectionId`, which comes from the record
 * and which no stored metadata can override (contract 4 and 5).
 */

import { filterText } from '../model/connection.ts'
import type { MetadataSet } from './block.ts'

/** What is known of one connection. */
export interface MetadataFacts {
  readonly connectionId: string
  readonly metadata: Readonly<Record<string, unknown>> | null
}

/** A constraint's key that stands for the connection itself. */
export const connectionIdFact = 'connectionId'

export function constraintAllows(sets: readonly MetadataSet[], facts: MetadataFacts): boolean {
  return sets.some((set) => set.every(([key, value]) => factOf(facts, key) === value))
}

export function filterAllows(facts: MetadataFacts, key: string, value: string): boolean {
  const { metadata } = facts
  return metadata !== null && Object.hasOwn(metadata, key) && filterText(metadata[key]) === value
}

function factOf({ connectionId, metadata }: MetadataFacts, key: string): unknown {
  if (key === connectionIdFact) return connectionId
  return metadata !== null && Object.hasOwn(metadata, key) ? metadata[key] : undefined
}
