/** Hashes of definitions (contract, 20.12): SHA-256 over RFC 8785 JSON without `_meta`. */

import { writingCanonical } from '../../schema/canonical-json.ts'

/** A definition that a server lists, by the hash that its pin has. */
export interface SeenDefinition {
  readonly name: string
  /** SHA-256 in hex. */
  readonly hash: string
  /** The text that was hashed; left out where it is not needed. */
  readonly text?: string
}

/** A definition by its hash, as work in steps. */
export function* hashingDefinition(
  definition: Readonly<Record<string, unknown>>,
): Generator<number, Required<SeenDefinition>> {
  const { _meta, ...pinned } = definition
  const text = yield* writingCanonical(pinned)
  // Hashing costs about as much as writing.
  yield text.length
  return { name: String(definition['name']), hash: hashOf(text), text }
}

/** The hash of instructions. Halves of characters are all one in UTF-8, so a text with one is hashed as JSON. */
export function instructionsHash(instructions: string): string {
  return hashOf(instructions.isWellFormed() ? instructions : JSON.stringify(instructions))
}

export function hashOf(text: string): string {
  return Bun.SHA256.hash(text, 'hex')
}

/** Hashes by name. A name with different definitions has one hash of them all: its client may take any of them. */
export function hashesByName(seen: readonly SeenDefinition[]): Map<string, string> {
  const all = new Map<string, string>()
  const twice = new Map<string, Set<string>>()
  for (const { name, hash } of seen) {
    const former = all.get(name)
    if (former === undefined) all.set(name, hash)
    else if (former !== hash) twice.getOrInsertComputed(name, () => new Set([former])).add(hash)
  }
  for (const [name, hashes] of twice) all.set(name, hashOf([...hashes].sort().join()))
  return all
}
