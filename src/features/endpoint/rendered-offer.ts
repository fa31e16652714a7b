/** The definitions of one connection as the endpoint of its namespace lists them, made once of each kept list. */

import { replacingValues } from '../../schema/replace-values.ts'
import { drained } from '../../schema/steps.ts'
import { type Definition, type ListKind, listKinds } from '../gateway/tool-requests.ts'
import { listedName, type NameLength } from './listed-names.ts'
import { isResourceUri, listedUri } from './listed-uris.ts'
import type { Offer } from './read-lists.ts'

/** A definition under its listed name or URI. */
export interface ListedDefinition {
  /** The connection's own name or URI. */
  readonly own: string
  readonly listed: string
  readonly definition: Definition
  /** The JSON of the definition with the listed name or URI. */
  readonly json: string
}

export type RenderedOffer = { readonly [Kind in ListKind]: readonly ListedDefinition[] }

/** By offer: its rendered form goes with it. */
const rendered = new WeakMap<Offer, Map<NameLength, RenderedOffer>>()

/** The definitions of an offer, as work in steps. */
export function* rendering(connectionId: string, offer: Offer, length: NameLength): Generator<number, RenderedOffer> {
  const byLength = rendered.getOrInsertComputed(offer, () => new Map<NameLength, RenderedOffer>())
  const kept = byLength.get(length)
  if (kept !== undefined) return kept
  const made: Partial<Record<ListKind, ListedDefinition[]>> = {}
  for (const kind of Object.keys(listKinds) as ListKind[]) {
    const { identifier } = listKinds[kind]
    const list: ListedDefinition[] = []
    for (const definition of offer[kind]) {
      const own = String(definition[identifier])
      const listed = identifier === 'name' ? listedName(connectionId, own, length) : listedUri(connectionId, own)
      const json = jsonOf(connectionId, { ...definition, [identifier]: listed })
      list.push({ own, listed, definition, json })
      yield json.length
    }
    made[kind] = list
  }
  byLength.set(length, made as RenderedOffer)
  return made as RenderedOffer
}

function jsonOf(connectionId: string, definition: Definition): string {
  const json = JSON.stringify(definition)
  if (!('_meta' in definition)) return json
  return drained(
    replacingValues(json, (path, raw) =>
      path[0] === '_meta' && raw.startsWith('"') && isResourceUri(path)
        ? JSON.stringify(listedUri(connectionId, JSON.parse(raw) as string))
        : undefined,
    ),
  )
}
