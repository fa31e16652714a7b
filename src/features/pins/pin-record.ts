/**
 * The record of a connection's pins: which definitions somebody accepted, and which of them its server lists now. Its
 * first line has the hashes, which every list and call needs; the others have the definitions, for people who compare
 * them.
 */

import type { PinList } from '../../model/pins.ts'
import { textOf } from '../../storage/bytes.ts'
import { hashesByName, type SeenDefinition } from './pinned-definitions.ts'

/** Ours: characters of definitions that are kept with a connection's pins. Past it: a change is shown without its differences. */
const pinnedTextCharsMax = 2 ** 20
/** Ours: changes of one connection that postern writes to the audit log before somebody accepts definitions. Past it: postern writes no further changes to the audit log. */
export const reportedMax = 1000

/** Ours: tools of one connection that have pins; each takes up to 400 bytes. Past it: a further tool has no pin, and postern hides this tool if the setting `pins` is `block`. */
export const pinnedToolsMax = 5000
/** Ours: bytes of the name of a tool that has a pin, written as JSON without the quotes; one key's share of memory is enough to read a record with 5,000 such names. Past it: as for `pinnedToolsMax`. */
const pinnedNameBytesMax = 256

/** The hash that was accepted, and the one that the server lists now. Null: none. */
export interface Pin {
  readonly accepted: string | null
  readonly present: string | null
}

export interface ConnectionPins {
  /** A hash of the record: it is kept beside the connection, and each change makes another. */
  readonly id: string
  /** Undefined before a complete list was read. */
  readonly tools: ReadonlyMap<string, Pin> | undefined
  /** Undefined before a greeting was read. */
  readonly instructions: Pin | undefined
  /** Hashes that the audit log has as changes. */
  readonly reported: ReadonlySet<string>
}

/** Pins with the definitions of their hashes. */
export interface PinRecord extends ConnectionPins {
  readonly texts: ReadonlyMap<string, string>
}

/** The part of a server's offer that was seen. */
export interface Seen {
  readonly tools?: { readonly list: readonly SeenDefinition[]; readonly isComplete: boolean }
  /** Null: the greeting has none. */
  readonly instructions?: { readonly hash: string; readonly text: string } | null
}

/** A definition that is not accepted. */
interface PinChange {
  /** Null for the instructions. */
  readonly tool: string | null
  readonly state: 'changed' | 'added'
  /** The hash of the definition. */
  readonly pin: string
}

export interface ChangedPins {
  readonly pins: PinRecord
  /** For the audit log, which does not have them yet. */
  readonly changes: readonly PinChange[]
}

/** Of a definition without a pin: `added`. */
export function stateOf(
  { accepted, present }: Pin = { accepted: null, present: '' },
): PinList['tools'][number]['state'] {
  if (present === null) return 'removed'
  if (accepted === null) return 'added'
  return accepted === present ? 'accepted' : 'changed'
}

export const noPins: PinRecord = {
  ...{ id: '', tools: undefined, instructions: undefined },
  ...{ reported: new Set<string>(), texts: new Map<string, string>() },
}

/** The pins after this was seen. `mayReport`: whether the audit log has room; if not, a later list reports a change. */
export function withSeen(before: PinRecord, seen: Seen, mayReport: () => boolean): ChangedPins {
  const texts = new Map(before.texts)
  let { tools, instructions } = before
  if (seen.tools !== undefined) {
    for (const { hash, text } of seen.tools.list) if (text !== undefined) texts.set(hash, text)
    tools = withTools(tools, seen.tools)
  }
  if (seen.instructions !== undefined) {
    const present = seen.instructions?.hash ?? null
    if (seen.instructions !== null) texts.set(seen.instructions.hash, seen.instructions.text)
    instructions = { accepted: instructions === undefined ? present : instructions.accepted, present }
  }
  const all: [string | null, Pin][] = [...(tools ?? [])]
  if (instructions !== undefined) all.push([null, instructions])
  const reported = new Set(before.reported)
  const changes: PinChange[] = []
  for (const [tool, pin] of all) {
    const state = stateOf(pin)
    if (pin.present === null || (state !== 'changed' && state !== 'added')) continue
    const name = Bun.SHA256.hash(`${pin.present} ${tool ?? ''}`, 'base64').slice(0, 22)
    if (reported.has(name) || reported.size >= reportedMax || !mayReport()) continue
    reported.add(name)
    changes.push({ tool, state, pin: pin.present })
  }
  return { pins: { ...before, tools, instructions, reported, texts }, changes }
}

function withTools(
  before: ReadonlyMap<string, Pin> | undefined,
  { list, isComplete }: NonNullable<Seen['tools']>,
): ReadonlyMap<string, Pin> | undefined {
  const present = new Map<string, string>()
  let left = pinnedToolsMax - (before?.size ?? 0)
  for (const [name, hash] of hashesByName(list)) {
    const isKnown = before?.has(name) === true
    if (!isKnown && (left <= 0 || Buffer.byteLength(JSON.stringify(name)) - 2 > pinnedNameBytesMax)) continue
    if (!isKnown) left -= 1
    present.set(name, hash)
  }
  if (before === undefined) {
    if (!isComplete) return undefined
    return new Map([...present].map(([name, hash]) => [name, { accepted: hash, present: hash }]))
  }
  const after = new Map(before)
  for (const [name, hash] of present) after.set(name, { accepted: before.get(name)?.accepted ?? null, present: hash })
  if (!isComplete) return after
  for (const [name, { accepted }] of before) {
    if (present.has(name)) continue
    if (accepted === null) after.delete(name)
    else after.set(name, { accepted, present: null })
  }
  return after
}

/** The pins with these present hashes accepted; undefined if one of them is not present. `instructions`: a hash. */
export function withAccepted(
  before: PinRecord,
  {
    tools: wanted,
    instructions: text,
  }: { readonly tools: ReadonlyMap<string, string>; readonly instructions?: string | undefined },
): PinRecord | undefined {
  const tools = new Map(before.tools)
  if (wanted.size === 0 && text === undefined) return before
  for (const [name, hash] of wanted) {
    const pin = tools.get(name)
    if (pin === undefined || shownHash(pin) !== hash) return undefined
    if (pin.present === null) tools.delete(name)
    else tools.set(name, { accepted: hash, present: hash })
  }
  const { instructions } = before
  if (text === undefined) return { ...before, tools: before.tools && tools, reported: new Set() }
  if (instructions === undefined || shownHash(instructions) !== text) return undefined
  const { present } = instructions
  return { ...before, tools: before.tools && tools, instructions: { accepted: present, present }, reported: new Set() }
}

/** The hash by which a definition is accepted: of one that is gone, the one that was accepted. */
export function shownHash({ accepted, present }: Pin): string | null {
  return present ?? accepted
}

interface Head {
  readonly id: string
  /** The present hash is left out where it is the accepted one. */
  readonly tools?: readonly (readonly [name: string, accepted: string | null, present?: string | null])[]
  readonly instructions?: Pin
  readonly reported: readonly string[]
}

/** The record's text and id, as work in steps. */
export function* writingPins(pins: PinRecord): Generator<number, { readonly id: string; readonly text: string }> {
  const { tools, instructions, reported } = pins
  const rows = [...(tools ?? [])].map(([name, { accepted, present }]) =>
    present === accepted ? ([name, accepted] as const) : ([name, accepted, present] as const),
  )
  yield rows.length * 100
  const said: Omit<Head, 'id'> = {
    ...(tools !== undefined && { tools: rows }),
    ...(instructions !== undefined && { instructions }),
    reported: [...reported],
  }
  const lines: string[] = []
  let left = pinnedTextCharsMax
  for (const { accepted, present } of [...(instructions ? [instructions] : []), ...(tools?.values() ?? [])]) {
    for (const hash of new Set([accepted, present])) {
      const text = hash === null ? undefined : pins.texts.get(hash)
      if (text === undefined || text.length > left) continue
      left -= text.length
      yield text.length
      lines.push(JSON.stringify([hash, text]))
    }
  }
  const id = Bun.SHA256.hash([JSON.stringify(said), ...lines].join('\n'), 'base64').slice(0, 22)
  return { id, text: [JSON.stringify({ id, ...said }), ...lines].join('\n') }
}

/** Reads the pins of a record without its texts, as work in steps. */
export function* readingPins(record: Uint8Array): Generator<number, ConnectionPins> {
  const end = record.indexOf(0x0a)
  const head = end === -1 ? record : record.subarray(0, end)
  yield head.length
  const { id, tools, instructions, reported } = JSON.parse(textOf(head)) as Head
  return {
    ...{ id, instructions, reported: new Set(reported) },
    tools: tools && new Map(tools.map(([name, accepted, present = accepted]) => [name, { accepted, present }])),
  }
}

/** Reads a record, as work in steps. */
export function* readingPinRecord(record: Uint8Array): Generator<number, PinRecord> {
  const pins = yield* readingPins(record)
  yield record.length
  const [, ...lines] = textOf(record).split('\n')
  return { ...pins, texts: new Map(lines.map((line) => JSON.parse(line) as [string, string])) }
}
