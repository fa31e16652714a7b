/** The definitions of one connection under the names and URIs of its namespace's endpoint. */

import type { Work } from '../../fairness/turns.ts'
import { type ReplaceValue, replacingValues } from '../../schema/replace-values.ts'
import { type Definition, type ListKind, listKinds } from '../gateway/tool-requests.ts'
import { definitionJson, definitionOf, type Kept, type KeptDefinition } from './kept-record.ts'
import { listedName, type NameLength } from './listed-names.ts'
import { isResourceUri, listedUri } from './listed-uris.ts'

/** A definition under its listed name or URI. */
export class ListedDefinition {
  readonly kind: ListKind
  readonly connectionId: string
  readonly listed: string
  readonly #kept: KeptDefinition

  constructor(kind: ListKind, connectionId: string, kept: KeptDefinition, length: NameLength) {
    this.kind = kind
    this.connectionId = connectionId
    this.#kept = kept
    const isName = listKinds[kind].identifier === 'name'
    this.listed = isName ? listedName(connectionId, kept.own, length) : listedUri(connectionId, kept.own)
  }

  get own(): string {
    return this.#kept.own
  }

  /** Characters of its JSON, about. */
  get size(): number {
    return this.listed.length + this.#kept.rest.length
  }

  /** Whether its JSON has this text: to learn that takes no parsing. */
  hasText(text: string): boolean {
    return this.#kept.rest.includes(text)
  }

  /** The definition as the server gave it. */
  get definition(): Definition {
    return definitionOf(this.kind, this.#kept)
  }

  /** The JSON of the definition as the server gave it. */
  get ownJson(): string {
    return definitionJson(this.kind, this.own, this.#kept)
  }

  /** The JSON of the definition with the listed name or URI, and those of the pages of apps. */
  *writing(): Work<string> {
    const json = definitionJson(this.kind, this.listed, this.#kept)
    if (!this.hasText('"ui') || !this.hasText('"_meta"')) return json
    const replace: ReplaceValue = (path, raw) =>
      path[0] === '_meta' && raw.startsWith('"') && isResourceUri(path)
        ? JSON.stringify(listedUri(this.connectionId, JSON.parse(raw) as string))
        : undefined
    try {
      return yield* replacingValues(json, replace)
    } catch (error) {
      // A definition that says little besides the same page again and again, which would keep out all others.
      if (error instanceof SyntaxError) return json
      throw error
    }
  }
}

export type RenderedOffer = { readonly [Kind in ListKind]: readonly ListedDefinition[] }

/** Cost of a listed name, some with a hash, and of so many characters of it; in the unit of `sliceCost`. */
const nameCost = 40
const characterCost = 0.2

/** The definitions of kept lists, as work in steps. */
export function* rendering(connectionId: string, kept: Kept, length: NameLength): Generator<number, RenderedOffer> {
  const made: Partial<Record<ListKind, ListedDefinition[]>> = {}
  for (const kind of Object.keys(listKinds) as ListKind[]) {
    const list: ListedDefinition[] = []
    for (const one of kept.lists[kind]) {
      yield nameCost + one.own.length * characterCost
      list.push(new ListedDefinition(kind, connectionId, one, length))
    }
    made[kind] = list
  }
  return made as RenderedOffer
}

/**
 * `rendering`, once for each kept list and length of names: all lists and searches of an endpoint need it. For five
 * hundred tools it takes 0.7 ms, and leaves as many objects to be collected.
 */
export function createRenderings(): typeof rendering {
  const made = new WeakMap<Kept, Map<NameLength, RenderedOffer>>()
  return function* (connectionId, kept, length) {
    const byLength = made.getOrInsertComputed(kept, () => new Map())
    const known = byLength.get(length)
    if (known !== undefined) return known
    const offer = yield* rendering(connectionId, kept, length)
    byLength.set(length, offer)
    return offer
  }
}
