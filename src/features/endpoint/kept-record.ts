/**
 * The record of what a connection offers: a head, and each definition on a line. Lists are made of its lines, so
 * nothing is built of definitions that a client only reads.
 */

import { stringEnd } from '../../schema/json-tokens.ts'
import { asBuffer } from '../../storage/bytes.ts'
import type { Message } from '../gateway/message.ts'
import { type Definition, type ListKind, listKinds } from '../gateway/tool-requests.ts'

/** Everything that a server offers: each definition as a line of the record. */
export type Offer = { readonly [Kind in ListKind]: readonly string[] } & {
  /** The revisions that the server speaks. */
  readonly era: Message['era']
  readonly instructions?: string
  /** The hash of all of them, uncut, for pins. Null for none; left out if the greeting is unknown. */
  readonly instructionsHash?: string | null
}

/** A definition as its line has it. */
export interface KeptDefinition {
  /** The connection's own name or URI. */
  readonly own: string
  /** The JSON of the definition after the member that identifies it, which is put first. */
  readonly rest: string
}

export interface Kept extends Pick<Offer, 'era' | 'instructions' | 'instructionsHash'> {
  /** Names what was asked (`hashOf` in kept-lists.ts): with other headers, or after a sign-in, the list is another. */
  readonly of: string
  /** ISO 8601: when the server confirmed it. */
  readonly listedAt: string
  /** A hash of everything but the time. */
  readonly id: string
  /** Bytes of the record. */
  readonly bytes: number
  readonly lists: { readonly [Kind in ListKind]: readonly KeptDefinition[] }
}

interface Head extends Omit<Kept, 'bytes' | 'lists'> {
  readonly counts: { readonly [Kind in ListKind]: number }
}

const kinds = Object.keys(listKinds) as ListKind[]

/** The lines of definitions, as work in steps: each list's are made when it is read, as they take less memory. */
export function* writingLines(kind: ListKind, definitions: readonly Definition[]): Generator<number, string[]> {
  const { identifier } = listKinds[kind]
  const lines: string[] = []
  for (const definition of definitions) {
    const rest = restOf(kind, definition)
    lines.push(`${JSON.stringify(definition[identifier])}${rest}`)
    yield rest.length
  }
  return lines
}

/** The JSON of a definition after the member that identifies it. */
export function restOf(kind: ListKind, definition: Definition): string {
  const { [listKinds[kind].identifier]: _, ...others } = definition
  const rest = JSON.stringify(others).slice(1)
  return rest === '}' ? rest : `,${rest}`
}

/** The record of an offer, as work in steps: it may have 14 MB. */
export function* writingRecord(
  offer: Offer,
  { of, listedAt }: Pick<Kept, 'of' | 'listedAt'>,
): Generator<number, Buffer<ArrayBuffer>> {
  const counts = Object.fromEntries(kinds.map((kind) => [kind, offer[kind].length]))
  const { era, instructions, instructionsHash } = offer
  const said = {
    ...(instructions !== undefined && { instructions }),
    ...(instructionsHash !== undefined && { instructionsHash }),
  }
  const told = { of, era, ...said, counts }
  const hash = new Bun.SHA256().update(JSON.stringify(told))
  const lines: Buffer[] = []
  for (const line of kinds.flatMap((kind) => offer[kind])) {
    const bytes = Buffer.from(`\n${line}`)
    hash.update(bytes)
    lines.push(bytes)
    yield line.length
  }
  const id = hash.digest('base64').slice(0, 22)
  return Buffer.concat([Buffer.from(JSON.stringify({ ...told, id, listedAt })), ...lines])
}

/** Reads a record, as work in steps. */
export function* readingRecord(record: Uint8Array): Generator<number, Kept> {
  const bytes = asBuffer(record)
  let at = 0
  const nextLine = () => {
    const end = bytes.indexOf('\n', at)
    const line = bytes.subarray(at, end < 0 ? bytes.length : end)
    at = end < 0 ? bytes.length : end + 1
    return line
  }
  const { counts, ...told } = JSON.parse(nextLine().toString()) as Head
  const lists: Partial<Record<ListKind, KeptDefinition[]>> = {}
  for (const kind of kinds) {
    const list: KeptDefinition[] = []
    while (list.length < counts[kind]) {
      const line = nextLine()
      yield line.length
      const text = line.toString()
      const name = text.slice(0, stringEnd(text, 0) + 1)
      // Not a part of the text: it would keep the whole, with two bytes for each character if one of them needs them.
      list.push({ own: JSON.parse(name) as string, rest: line.toString('utf8', Buffer.byteLength(name)) })
    }
    lists[kind] = list
  }
  return { ...told, bytes: bytes.length, lists: lists as Kept['lists'] }
}

/** The JSON of a definition under a name or URI. */
export function definitionJson(kind: ListKind, name: string, { rest }: KeptDefinition): string {
  return `{"${listKinds[kind].identifier}":${JSON.stringify(name)}${rest}`
}

/** The definition itself, under the connection's own name. */
export function definitionOf(kind: ListKind, kept: KeptDefinition): Definition {
  return JSON.parse(definitionJson(kind, kept.own, kept)) as Definition
}

/** The size of kept lists, as the record of their connection has it. */
export function sizeOf(kept: Kept | undefined): { readonly bytes: number; readonly definitions: number } {
  const definitions = Object.values(kept?.lists ?? {}).reduce((sum, { length }) => sum + length, 0)
  return { bytes: kept?.bytes ?? 0, definitions }
}
